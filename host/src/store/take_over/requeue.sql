-- store::take_over::requeue
WITH requeued AS (
    UPDATE export_jobs AS job
    SET status = 'Queued', attempt_id = NULL, claimed_by = NULL, lease_expires_at = NULL, woken_at = clock_timestamp()
    WHERE job.id = $1
      AND job.attempt_id = $2
      AND job.status = 'Running'
      AND job.stop_request_id IS NULL
      AND job.attempt_count < $3
      AND job.lease_expires_at < clock_timestamp()
      AND history_is_known(job.id, job.known_system, job.known_timeline, false)
    RETURNING job.id, job.priority, job.woken_at),
event AS (
    INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, recorded_at)
    SELECT id, $2, 'RequeuedByRecovery', $4, clock_timestamp() FROM requeued),
message AS (
    SELECT gen_random_uuid() AS message_id, id, priority, woken_at FROM requeued),
wake AS (
    INSERT INTO outbox (message_id, kind, job_id, created_at)
    SELECT message_id, 'ExportReady', id, clock_timestamp() FROM message),
ready AS (
    INSERT INTO outbox_claims (message_id, priority, ready_at)
    SELECT message_id, priority, woken_at FROM message)
SELECT id AS "id!" FROM message
