-- store::fence_earlier
WITH replacement AS (
    SELECT id, tenant_id, delivery_key
    FROM export_jobs
    WHERE id = $1 AND attempt_id = $2 AND status = 'Delivering' AND publish_intended_at IS NULL
    FOR SHARE),
earlier AS (
    SELECT open.job_id, open.attempt_id
    FROM replacement
    CROSS JOIN open_attempts(replacement.tenant_id, replacement.delivery_key) AS open
    WHERE open.job_id = $3 AND open.attempt_id = $4
      AND open.publish_intended_at IS NOT NULL),
held AS (
    INSERT INTO looks (job_id, attempt_id, purpose, next_at, until, owner, token, expires_at)
    SELECT job_id, attempt_id, 'acknowledgment', clock_timestamp(), clock_timestamp(), $5, $6,
           clock_timestamp() + make_interval(secs => $7)
    FROM earlier
    ON CONFLICT (job_id, attempt_id) DO UPDATE
    SET owner = EXCLUDED.owner, token = EXCLUDED.token, expires_at = EXCLUDED.expires_at
    WHERE looks.token IS NULL OR looks.expires_at < clock_timestamp()
    RETURNING looks.job_id, looks.attempt_id)
INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, detail, recorded_at)
SELECT job_id, attempt_id, 'DeliveryEvidence', $5, $8, clock_timestamp() FROM held
RETURNING id
