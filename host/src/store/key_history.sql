-- store::key_history
WITH place AS (
    SELECT job.tenant_id,
           job.delivery_key,
           coalesce($3, own.endpoint) AS endpoint,
           coalesce($4, own.directory) AS directory,
           coalesce($5, own.folded_name) AS folded_name
    FROM export_jobs AS job
    LEFT JOIN final_name_uses AS own ON own.job_id = job.id
    WHERE job.id = $1),
concerned AS (
    SELECT job.id, true AS same_key, false AS same_name
    FROM place
    JOIN export_jobs AS job ON job.tenant_id = place.tenant_id AND job.delivery_key = place.delivery_key
    UNION ALL
    SELECT used.job_id, false, true
    FROM place
    JOIN final_name_uses AS used
        ON used.endpoint = place.endpoint AND used.directory = place.directory AND used.folded_name = place.folded_name),
seen AS (
    SELECT job.*, concerned.same_key, concerned.same_name
    FROM (SELECT id, bool_or(same_key) AS same_key, bool_or(same_name) AS same_name FROM concerned GROUP BY id) AS concerned
    JOIN export_jobs AS job ON job.id = concerned.id)
SELECT seen.expected_file_name,
       seen.expected_file_bytes,
       seen.expected_file_sha256,
       seen.same_key AS "same_key!",
       -- Once it was authorized, a row keeps the attempt that was.
       NOT (seen.id = $1 AND (seen.attempt_id = $2 OR seen.delivery_authorized_at IS NULL)) AS "other!",
       (seen.same_name AND seen.id <> $1) AS "other_name_user!",
       (seen.delivery_authorized_at IS NOT NULL) AS "authorized!",
       (seen.publish_intended_at IS NOT NULL) AS "past_fence!",
       (seen.status = 'Completed') AS "completed!",
       CASE WHEN seen.same_key
            THEN NOT history_is_known(seen.id, seen.known_system, seen.known_timeline, true)
                 OR EXISTS (SELECT FROM accepted_losses AS accepted
                            WHERE NOT accepted.fences_intact
                              AND (accepted.job_id IS NULL OR accepted.job_id = seen.id)
                              AND accepted.recorded_at >= seen.created_at)
            ELSE false END AS "may_be_lost!"
FROM seen
ORDER BY seen.delivery_authorized_at DESC NULLS LAST, seen.id
