-- store::authorize_delivery
-- A correction of the original updates its row, so it waits for this share lock, or this waits for it and looks again.
WITH original_open AS (
    SELECT original.id
    FROM export_jobs AS replacement
    JOIN export_jobs AS original ON original.id = replacement.replaces_job_id
    WHERE replacement.id = $1 AND original.status <> 'Completed'
    FOR SHARE OF original),
authorized AS (
    UPDATE export_jobs AS job
    SET status = 'Delivering',
        expected_file_name = $3,
        expected_file_bytes = $4,
        expected_file_sha256 = $5,
        delivery_authorized_at = clock_timestamp()
    WHERE job.id = $1
      AND job.attempt_id = $2
      AND job.status = 'Running'
      AND job.stop_request_id IS NULL
      AND job.lease_expires_at > clock_timestamp()
      AND (job.replaces_job_id IS NULL OR EXISTS (SELECT FROM original_open))
      AND NOT EXISTS (SELECT FROM export_jobs AS earlier
                      WHERE earlier.tenant_id = job.tenant_id AND earlier.delivery_key = job.delivery_key
                        AND (earlier.destination_id <> job.destination_id OR earlier.expected_file_name <> $3))
    RETURNING job.id, job.tenant_id, job.attempt_id, job.claimed_by, job.delivery_key, job.destination_id,
              job.delivery_authorized_at),
named AS (
    -- Held by another key, the update's trigger raises WB006 and takes the whole statement back.
    INSERT INTO final_names AS held (endpoint, directory, folded_name, tenant_id, delivery_key, job_id, reused, held_since)
    SELECT $6, $7, $8, authorized.tenant_id, authorized.delivery_key, authorized.id,
           $9 AND destination.contract @> '{"names_reused": true}', authorized.delivery_authorized_at
    FROM authorized
    JOIN destinations AS destination ON destination.id = authorized.destination_id
    ON CONFLICT (endpoint, directory, folded_name) DO UPDATE
    SET tenant_id = excluded.tenant_id,
        delivery_key = excluded.delivery_key,
        job_id = excluded.job_id,
        reused = excluded.reused,
        held_since = CASE WHEN (held.tenant_id, held.delivery_key) = (excluded.tenant_id, excluded.delivery_key)
                          THEN held.held_since ELSE excluded.held_since END),
event AS (
    INSERT INTO export_attempt_events (job_id, attempt_id, kind, worker_id, detail, recorded_at)
    SELECT id, attempt_id, 'DeliveryAuthorized', claimed_by, $10, delivery_authorized_at FROM authorized)
SELECT id AS "id!" FROM authorized
