-- What a person answers for when a replacement is created while an earlier attempt of its key is open.

ALTER TABLE export_jobs
    ADD COLUMN cannot_upload_statement text,
    ADD CONSTRAINT ck_export_jobs_cannot_upload
        CHECK (cannot_upload_statement IS NULL OR (replaces_job_id IS NOT NULL AND cannot_upload_statement <> ''));

COMMENT ON COLUMN export_jobs.cannot_upload_statement IS 'On a replacement: its creator''s words that the earlier attempts of the key which were still open can no longer upload. Demanded by creation only if one was open. Nobody may change it.';

-- Inserted with the replacement; no login may update it.
GRANT INSERT (cannot_upload_statement) ON export_jobs TO waybill_api;

-- "tenant" and "key" are the function's arguments; columns are qualified.
CREATE FUNCTION open_attempts(tenant uuid, key text)
    RETURNS TABLE (job_id uuid, attempt_id uuid, status text, publish_intended_at timestamptz) LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT job.id, job.attempt_id, job.status, job.publish_intended_at
    FROM export_jobs AS job
    WHERE job.tenant_id = tenant AND job.delivery_key = key
      AND (job.status IN ('Queued', 'Running', 'Delivering')
           OR (job.attempt_id IS NOT NULL
               AND (job.publish_intended_at IS NOT NULL
                    OR NOT history_is_known(job.id, job.known_system, job.known_timeline, true))
               AND NOT EXISTS (SELECT FROM export_attempt_events AS event
                               WHERE event.job_id = job.id AND event.attempt_id = job.attempt_id
                                 AND event.kind = 'DeliveryEvidence' AND event.detail @> '{"temporary_removed": true}')));
END;
COMMENT ON FUNCTION open_attempts(uuid, text) IS 'Attempts of a delivery key that may still bring its file to the partner: they have not ended, or they passed the publish fence (or may have, in a database that lost commits) and the removal of their temporary file is not confirmed.';
