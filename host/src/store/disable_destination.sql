-- store::disable_destination
WITH found AS (
    SELECT id, tenant_id, enabled FROM destinations WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE),
disabled AS (
    UPDATE destinations AS destination SET enabled = false FROM found WHERE destination.id = found.id),
recorded AS (
    INSERT INTO audit (tenant_id, actor, action, target, detail)
    SELECT tenant_id, $3, 'disable_destination', id::text,
           jsonb_build_object('reason', $4::text, 'was_enabled', enabled)
    FROM found)
SELECT enabled FROM found
