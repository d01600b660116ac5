-- store::enable_destination
WITH found AS (
    SELECT id, tenant_id, enabled
    FROM destinations
    WHERE tenant_id = $1 AND id = $2 AND contract = $5
      AND $6 = (SELECT latest.id FROM destination_checks AS latest
                WHERE latest.destination_id = $2
                  AND latest.checked = destinations.digests ->> 'checked'
                  AND latest.finished_at IS NOT NULL
                ORDER BY latest.finished_at DESC LIMIT 1)
    FOR NO KEY UPDATE),
enabled AS (
    UPDATE destinations AS destination SET enabled = true FROM found WHERE destination.id = found.id),
recorded AS (
    INSERT INTO audit (tenant_id, actor, action, target, detail)
    SELECT tenant_id, $3, 'enable_destination', id::text,
           jsonb_build_object('reason', $4::text, 'was_enabled', enabled, 'check', $6::uuid)
    FROM found)
SELECT enabled FROM found
