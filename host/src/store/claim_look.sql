-- store::claim_look
WITH due AS (
    SELECT look.job_id, look.attempt_id, job.destination_id
    FROM looks AS look
    JOIN export_jobs AS job ON job.id = look.job_id
    WHERE look.ended_at IS NULL
      AND look.next_at <= clock_timestamp()
      AND (look.token IS NULL OR look.expires_at < clock_timestamp())
      AND job.destination_id = ANY ($4)
    ORDER BY look.next_at
    LIMIT 1
    FOR UPDATE OF look SKIP LOCKED)
UPDATE looks AS look
SET owner = $1, token = $2, expires_at = clock_timestamp() + make_interval(secs => $3)
FROM due
WHERE (look.job_id, look.attempt_id) = (due.job_id, due.attempt_id)
RETURNING look.job_id, look.attempt_id, due.destination_id, look.purpose, look.looks, look.last_found,
          coalesce(look.until < clock_timestamp(), false) AS "last!"
