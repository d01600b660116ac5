-- store::list_jobs
SELECT id, tenant_id, status, version, destination_id, scope, not_before, priority, attempt_id, attempt_count, claimed_by,
       lease_expires_at, stop_request_id, cancellation_request_id, expected_file_name, expected_file_bytes,
       expected_file_sha256, delivery_authorized_at, publish_intended_at, woken_at, failure_reason, rejection,
       delivery_key, replaces_job_id, created_by, created_at, replacement_reason, overwrite_agreement_ref, sweep_count
FROM export_jobs
WHERE tenant_id = $1
  AND (cardinality($2::text[]) = 0 OR status = ANY($2))
  AND ($3::uuid IS NULL OR destination_id = $3)
  AND ($4::text IS NULL OR delivery_key = $4)
  AND ($5::text IS NULL OR created_by = $5)
  AND ($6::timestamptz IS NULL OR (created_at, id) < ($6, $7::uuid))
ORDER BY created_at DESC, id DESC
LIMIT $8
