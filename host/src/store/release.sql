-- store::release
WITH released AS (
    UPDATE export_jobs AS job
    SET status = CASE WHEN job.stop_request_id IS NOT NULL THEN 'Stopped'
                      WHEN job.attempt_count >= $3 THEN 'Failed'
                      ELSE 'Queued' END,
        failure_reason = CASE WHEN job.stop_request_id IS NULL AND job.attempt_count >= $3 THEN 'AttemptsExhausted' END,
        attempt_id = CASE WHEN job.stop_request_id IS NOT NULL OR job.attempt_count >= $3 THEN job.attempt_id END,
        claimed_by = CASE WHEN job.stop_request_id IS NOT NULL OR job.attempt_count >= $3 THEN job.claimed_by END,
        lease_expires_at = NULL,
        woken_at = CASE WHEN job.stop_request_id IS NOT NULL OR job.attempt_count >= $3 THEN job.woken_at
                        ELSE clock_timestamp() + make_interval(secs => $4) END
    WHERE job.id = $1 AND job.attempt_id = $2 AND job.status = 'Running'
    RETURNING job.id, job.status, job.priority, job.woken_at),
event AS (
    INSERT INTO export_attempt_events (job_id, attempt_id, kind, worker_id, detail, recorded_at)
    SELECT id, $2,
           CASE status WHEN 'Stopped' THEN 'Stopped' WHEN 'Failed' THEN 'AttemptsExhausted' ELSE 'ReleasedByWorker' END,
           $5, $6, clock_timestamp()
    FROM released),
message AS (
    SELECT gen_random_uuid() AS message_id, id, priority, woken_at FROM released WHERE status = 'Queued'),
wake AS (
    INSERT INTO outbox (message_id, kind, job_id, created_at)
    SELECT message_id, 'ExportReady', id, clock_timestamp() FROM message),
ready AS (
    INSERT INTO outbox_claims (message_id, priority, ready_at)
    SELECT message_id, priority, woken_at FROM message)
SELECT status AS "status!" FROM released
