-- store::take_over::resolve
WITH resolved AS (
    UPDATE export_jobs AS job
    SET status = $3, lease_expires_at = NULL
    WHERE job.id = $1
      AND job.attempt_id = $2
      AND job.status = 'Delivering'
      AND job.lease_expires_at < clock_timestamp()
      AND history_is_known(job.id, job.known_system, job.known_timeline, false)
      AND CASE $3
          WHEN 'OutcomeUnknown' THEN true
          WHEN 'Completed' THEN job.publish_intended_at IS NOT NULL
              AND CASE $4
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
          ELSE false END
    RETURNING job.id, job.attempt_id, job.status),
event AS (
    INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, detail, recorded_at)
    SELECT id, attempt_id, 'ResolvedByRecovery', $5, $6, clock_timestamp() FROM resolved),
look AS (
    INSERT INTO looks (job_id, attempt_id, purpose, next_at, until)
    SELECT id, attempt_id, CASE status WHEN 'OutcomeUnknown' THEN 'outcome' ELSE 'acknowledgment' END,
           clock_timestamp() + make_interval(secs => $7), clock_timestamp() + make_interval(secs => $8)
    FROM resolved
    WHERE status = 'OutcomeUnknown' OR $8 IS NOT NULL
    ON CONFLICT (job_id, attempt_id) DO NOTHING)
SELECT id AS "id!" FROM resolved
