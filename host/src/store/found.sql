-- store::found
SELECT job.status,
       job.version,
       job.attempt_id,
       job.attempt_count,
       job.stop_request_id,
       coalesce(job.lease_expires_at > clock_timestamp(), false) AS "lease_current!",
       job.delivery_authorized_at IS NOT NULL AS "authorized!",
       job.publish_intended_at IS NOT NULL AS "publish_intended!",
       job.failure_reason,
       coalesce(job.not_before <= clock_timestamp(), true) AS "due!",
       destination.enabled AS "destination_enabled!",
       history_is_known(job.id, job.known_system, job.known_timeline, false) AS "history_known!",
       original.status AS "original_status?"
FROM export_jobs AS job
JOIN destinations AS destination ON destination.id = job.destination_id
LEFT JOIN export_jobs AS original ON original.id = job.replaces_job_id
WHERE job.id = $1 AND ($2::uuid IS NULL OR job.tenant_id = $2)
