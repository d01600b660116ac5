-- An earlier attempt is closed as well by a removal that the reconciler recorded.

CREATE OR REPLACE FUNCTION open_attempts(tenant uuid, key text)
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
                                 AND event.kind = 'DeliveryEvidence'
                                 AND (event.detail @> '{"temporary_removed": true}'
                                      OR event.detail @> '{"evidence": "removal_answered", "answer": "acknowledged"}'))));
END;
