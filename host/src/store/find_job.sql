-- store::find_job
SELECT id, tenant_id, status, version, destination_id, scope, not_before, priority, attempt_id, attempt_count, claimed_by,
       lease_expires_at, stop_request_id, cancellation_request_id, expected_file_name, expected_file_bytes,
       expected_file_sha256, delivery_authorized_at, publish_intended_at, woken_at, failure_reason, rejection,
       delivery_key, replaces_job_id, created_by, created_at, replacement_reason, overwrite_agreement_ref, sweep_count
FROM export_jobs
WHERE id = $1 AND ($2::uuid IS NULL OR tenant_id = $2)
