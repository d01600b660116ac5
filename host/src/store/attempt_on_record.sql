-- store::attempt_on_record
SELECT job.tenant_id,
       job.attempt_count,
       job.version,
       job.destination_id,
       job.delivery_key,
       job.scope,
       coalesce(original.created_at, job.created_at) AS "created_at!",
       job.replaces_job_id,
       job.overwrite_agreement_ref IS NOT NULL AS "overwrite_agreed!",
       original.expected_file_name AS "original_name?",
       original.expected_file_bytes AS "original_bytes?",
       original.expected_file_sha256 AS "original_sha256?",
       job.status,
       job.expected_file_name,
       job.expected_file_bytes,
       job.expected_file_sha256,
       job.publish_intended_at IS NOT NULL AS "fenced!",
       history_is_known(job.id, job.known_system, job.known_timeline, true) AS "fences_known!",
       extract(epoch FROM clock_timestamp() - job.publish_intended_at)::float8 AS since_intended,
       (SELECT extract(epoch FROM clock_timestamp() - max(event.recorded_at))::float8
        FROM export_attempt_events AS event
        WHERE event.job_id = job.id AND event.attempt_id = $2
          AND (event.kind IN ('ResolvedByRecovery', 'Finished')
               OR (event.kind = 'DeliveryEvidence'
                   AND event.detail ->> 'evidence' IN ('publish', 'removal_answered')))) AS since_settled
FROM export_jobs AS job
LEFT JOIN export_jobs AS original ON original.id = job.replaces_job_id
WHERE job.id = $1 AND job.attempt_id = $2
