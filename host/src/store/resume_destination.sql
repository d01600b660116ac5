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
    FROM found),
waiting AS (
    SELECT gen_random_uuid() AS message_id, job.id, job.priority
    FROM found
    JOIN export_jobs AS job ON job.destination_id = found.id
    WHERE job.status = 'Queued' AND coalesce(job.not_before <= clock_timestamp(), true)
    ORDER BY job.priority DESC, job.woken_at
    LIMIT $4),
wake AS (
    INSERT INTO outbox (message_id, kind, job_id, created_at)
    SELECT message_id, 'ExportReady', id, clock_timestamp() FROM waiting),
ready AS (
    INSERT INTO outbox_claims (message_id, priority, ready_at)
    SELECT message_id, priority, clock_timestamp() FROM waiting)
SELECT attention_why, was_paused AS "was_paused!", (SELECT count(*) FROM waiting) AS "woken!" FROM found
