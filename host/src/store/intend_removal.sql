-- store::intend_removal
WITH open AS (
    SELECT id, attempt_id
    FROM export_jobs
    WHERE id = $1 AND attempt_id = $2 AND status = 'OutcomeUnknown' AND publish_intended_at IS NOT NULL
    FOR SHARE),
held AS (
    UPDATE looks
    SET expires_at = clock_timestamp() + make_interval(secs => $6)
    FROM open
    WHERE (looks.job_id, looks.attempt_id) = (open.id, open.attempt_id)
      AND looks.token = $3
      AND looks.expires_at > clock_timestamp()
    RETURNING looks.job_id, looks.attempt_id)
INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, detail, recorded_at)
SELECT job_id, attempt_id, 'DeliveryEvidence', $4, $5, clock_timestamp() FROM held
RETURNING id
