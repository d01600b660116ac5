-- store::claim
WITH claimed AS (
    UPDATE export_jobs AS job
    SET status = 'Running',
        attempt_id = $2,
        attempt_count = job.attempt_count + 1,
        claimed_by = $4,
        lease_expires_at = clock_timestamp() + make_interval(secs => $5),
        known_system = here.system,
        known_timeline = here.timeline
    FROM database_history() AS here
    WHERE job.id = $1
      AND job.status = 'Queued'
      AND job.version = $3
      AND coalesce(job.not_before <= clock_timestamp(), true)
      AND history_is_known(job.id, job.known_system, job.known_timeline, false)
      AND EXISTS (SELECT FROM destinations AS destination WHERE destination.id = job.destination_id AND destination.enabled)
    RETURNING job.id, job.tenant_id, job.attempt_id, job.attempt_count, job.version, job.destination_id, job.delivery_key,
              job.scope, job.created_at, job.claimed_by, job.replaces_job_id, job.overwrite_agreement_ref),
event AS (
    INSERT INTO export_attempt_events (job_id, attempt_id, kind, version, worker_id, detail, recorded_at)
    SELECT id, attempt_id, 'Claimed', version, claimed_by, $6::jsonb || jsonb_build_object('destination_id', destination_id), clock_timestamp()
    FROM claimed)
SELECT claimed.tenant_id AS "tenant_id!",
       claimed.attempt_count AS "attempt_count!",
       claimed.version AS "version!",
       claimed.destination_id AS "destination_id!",
       claimed.delivery_key AS "delivery_key!",
       claimed.scope AS "scope!",
       coalesce(original.created_at, claimed.created_at) AS "created_at!",
       claimed.replaces_job_id AS "replaces_job_id?",
       claimed.overwrite_agreement_ref IS NOT NULL AS "overwrite_agreed!",
       original.expected_file_name AS "original_name?",
       original.expected_file_bytes AS "original_bytes?",
       original.expected_file_sha256 AS "original_sha256?"
FROM claimed
LEFT JOIN export_jobs AS original ON original.id = claimed.replaces_job_id
