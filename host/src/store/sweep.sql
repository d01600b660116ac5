-- store::sweep
WITH due AS (
    SELECT job.id
    FROM export_jobs AS job
    WHERE job.status = 'Queued'
      AND job.woken_at < clock_timestamp() - make_interval(secs => $1)
      AND coalesce(job.not_before <= clock_timestamp(), true)
    ORDER BY job.woken_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED),
swept AS (
    UPDATE export_jobs AS job
    SET woken_at = clock_timestamp(), sweep_count = job.sweep_count + 1
    FROM due
    WHERE job.id = due.id
    RETURNING job.id, job.priority, job.woken_at, job.sweep_count),
message AS (
    SELECT gen_random_uuid() AS message_id, id, priority, woken_at, sweep_count FROM swept),
wake AS (
    INSERT INTO outbox (message_id, kind, job_id, created_at)
    SELECT message_id, 'ExportReady', id, clock_timestamp() FROM message),
ready AS (
    INSERT INTO outbox_claims (message_id, priority, ready_at)
    SELECT message_id, priority, woken_at FROM message)
SELECT id AS "job!", sweep_count AS "sweep_count!" FROM message
