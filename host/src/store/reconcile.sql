-- store::reconcile
WITH reconciled AS (
    UPDATE export_jobs AS job
    SET status = $3, failure_reason = $4
    WHERE job.id = $1
      AND job.attempt_id = $2
      AND job.status = 'OutcomeUnknown'
      AND CASE $3
          WHEN 'Completed' THEN
              (job.publish_intended_at IS NOT NULL
               OR NOT history_is_known(job.id, job.known_system, job.known_timeline, true))
              AND CASE $5
                  WHEN 'attempt' THEN true
                  WHEN 'content' THEN NOT EXISTS (
                      SELECT FROM export_jobs AS other
                      WHERE other.tenant_id = job.tenant_id AND other.delivery_key = job.delivery_key AND other.id <> job.id
                        AND other.expected_file_sha256 = job.expected_file_sha256)
                  WHEN 'listing' THEN NOT EXISTS (
                      SELECT FROM export_jobs AS other
                      WHERE other.tenant_id = job.tenant_id AND other.delivery_key = job.delivery_key AND other.id <> job.id
                        AND other.delivery_authorized_at IS NOT NULL)
                  ELSE false END
          WHEN 'Failed' THEN
              CASE $5
                  WHEN 'evidence' THEN true
                  WHEN 'absent_fence' THEN job.publish_intended_at IS NULL
                      AND history_is_known(job.id, job.known_system, job.known_timeline, true)
                  ELSE false END
          ELSE false END
    RETURNING job.id, job.attempt_id),
event AS (
    INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, detail, recorded_at)
    SELECT id, attempt_id, 'Reconciled', $6, $7, clock_timestamp() FROM reconciled),
look AS (
    UPDATE looks
    SET purpose = 'acknowledgment',
        next_at = clock_timestamp() + make_interval(secs => $8),
        until = clock_timestamp() + make_interval(secs => $9),
        ended_at = CASE WHEN $9::float8 IS NULL THEN clock_timestamp() END,
        owner = NULL, token = NULL, expires_at = NULL
    FROM reconciled
    WHERE (looks.job_id, looks.attempt_id) = (reconciled.id, reconciled.attempt_id))
SELECT id AS "id!" FROM reconciled
