-- store::finish_delivery
WITH finished AS (
    UPDATE export_jobs
    SET status = $3, failure_reason = $4, lease_expires_at = NULL
    WHERE id = $1 AND attempt_id = $2 AND status = 'Delivering'
      AND ($3 <> 'Completed' OR publish_intended_at IS NOT NULL)
    RETURNING id, attempt_id, claimed_by),
event AS (
    INSERT INTO export_attempt_events (job_id, attempt_id, kind, worker_id, detail, recorded_at)
    SELECT id, attempt_id, 'Finished', claimed_by, $5, clock_timestamp() FROM finished),
look AS (
    INSERT INTO looks (job_id, attempt_id, purpose, next_at, until)
    SELECT id, attempt_id, CASE $3 WHEN 'OutcomeUnknown' THEN 'outcome' ELSE 'acknowledgment' END,
           clock_timestamp() + make_interval(secs => $6), clock_timestamp() + make_interval(secs => $7)
    FROM finished
    WHERE $3 = 'OutcomeUnknown' OR $7 IS NOT NULL
    ON CONFLICT (job_id, attempt_id) DO NOTHING)
SELECT id AS "id!" FROM finished
