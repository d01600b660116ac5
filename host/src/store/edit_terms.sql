-- store::edit_terms
WITH edited AS (
    UPDATE export_jobs AS job
    SET destination_id = $4,
        scope = $5,
        not_before = $6,
        version = job.version + 1,
        woken_at = greatest(clock_timestamp(), $6)
    WHERE job.tenant_id = $1 AND job.id = $2 AND job.version = $3 AND job.status = 'Queued'
      AND (job.replaces_job_id IS NULL OR job.destination_id = $4)
    RETURNING job.id, job.tenant_id, job.version, job.priority, job.woken_at),
message AS (
    SELECT gen_random_uuid() AS message_id, id, priority, woken_at FROM edited),
wake AS (
    INSERT INTO outbox (message_id, kind, job_id, created_at)
    SELECT message_id, 'ExportReady', id, clock_timestamp() FROM message),
ready AS (
    INSERT INTO outbox_claims (message_id, priority, ready_at)
    SELECT message_id, priority, woken_at FROM message),
told AS (
    INSERT INTO audit (tenant_id, actor, action, target, detail)
    SELECT tenant_id, $7, 'edit', id::text,
           jsonb_build_object('version', version, 'destination', $4::uuid, 'not_before', $6::timestamptz)
    FROM edited)
SELECT version AS "version!" FROM edited
