-- store::correct
WITH corrected AS (
    UPDATE export_jobs AS job
    SET status = $5, failure_reason = CASE WHEN $5 = 'Failed' THEN $6 END
    WHERE job.tenant_id = $1
      AND job.id = $2
      AND job.attempt_id = $3
      AND job.status = $4
      AND $5 IN ('Completed', 'Failed')
      AND $5 <> $4
      AND job.delivery_authorized_at IS NOT NULL
    RETURNING job.id, job.attempt_id),
event AS (
    INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, detail, recorded_at)
    SELECT id, attempt_id, 'Corrected', $7, $8, clock_timestamp() FROM corrected)
SELECT id AS "id!" FROM corrected
