-- store::claim, after a lost answer
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
       original.expected_file_sha256 AS "original_sha256?"
FROM export_jobs AS job
LEFT JOIN export_jobs AS original ON original.id = job.replaces_job_id
WHERE job.id = $1 AND job.attempt_id = $2 AND job.status = 'Running'
