-- store::resume_destination
WITH found AS (
    SELECT id, tenant_id, attention_why, pause_failures > 0 AS was_paused
    FROM destinations
    WHERE tenant_id = $1 AND id = $2
    FOR NO KEY UPDATE),
resumed AS (
    UPDATE destinations AS destination
    SET attention_since = NULL,
        attention_why = NULL,
        pause_failures = 0,
        paused_at = NULL,
        paused_until = NULL,
        probe_job_id = NULL,
        probe_until = NULL
    FROM found
    WHERE destination.id = found.id),
recorded AS (
    INSERT INTO audit (tenant_id, actor, action, target, detail)
    SELECT tenant_id, $3, 'resume_destination', id::text,
           jsonb_build_object('attention_why', attention_why, 'was_paused', was_paused)
    FROM found)
SELECT attention_why, was_paused AS "was_paused!" FROM found
