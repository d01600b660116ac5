-- store::reconcile_by_hand
WITH reconciled AS (
    UPDATE export_jobs AS job
    SET status = $4, failure_reason = $5
    WHERE job.tenant_id = $1
      AND job.id = $2
      AND job.attempt_id = $3
      AND job.status = 'OutcomeUnknown'
      -- What provably never passed the fence is no delivery, whoever says so.
      AND ($4 <> 'Completed'
           OR job.publish_intended_at IS NOT NULL
           OR NOT history_is_known(job.id, job.known_system, job.known_timeline, true))
    RETURNING job.id, job.attempt_id),
event AS (
    INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, detail, recorded_at)
    SELECT id, attempt_id, 'Reconciled', $6, $7, clock_timestamp() FROM reconciled),
-- A reconciler may be at it. Its lease is its own to give back; it finds an end that has passed.
look AS (
    UPDATE looks
    SET purpose = 'acknowledgment',
        next_at = clock_timestamp() + CASE WHEN $9::float8 IS NULL THEN interval '0' ELSE make_interval(secs => $8) END,
        until = clock_timestamp() + make_interval(secs => coalesce($9, 0)),
        ended_at = CASE WHEN $9 IS NULL AND looks.token IS NULL THEN clock_timestamp() ELSE looks.ended_at END
    FROM reconciled
    WHERE (looks.job_id, looks.attempt_id) = (reconciled.id, reconciled.attempt_id))
SELECT id AS "id!" FROM reconciled
