-- store::create_replacement
WITH here AS (
    SELECT system, timeline FROM database_history()),
-- An original that can be replaced has ended, so what is open of its key can only become less; another replacement that
-- lives, whatever it does meanwhile, counts as open here and holds the slot below.
original AS (
    SELECT original.id, original.tenant_id, original.destination_id, original.scope, original.priority, original.delivery_key
    FROM export_jobs AS original
    WHERE original.tenant_id = $2
      AND original.id = $3
      AND original.replaces_job_id IS NULL
      AND (original.status = 'OutcomeUnknown'
           OR (original.status = 'Failed' AND original.failure_reason IN ('BuildFailed', 'AttemptsExhausted', 'NotDelivered')))
      AND ($7::text IS NOT NULL OR NOT EXISTS (SELECT FROM open_attempts(original.tenant_id, original.delivery_key)))
    FOR UPDATE OF original),
created AS (
    INSERT INTO export_jobs (id, tenant_id, status, version, destination_id, scope, priority, delivery_key, replaces_job_id,
                             created_by, replacement_reason, overwrite_agreement_ref, cannot_upload_statement, woken_at,
                             known_system, known_timeline)
    SELECT $1, original.tenant_id, 'Queued', 1, original.destination_id, original.scope, original.priority,
           original.delivery_key, original.id, $4, $5, $6, $7, clock_timestamp(), here.system, here.timeline
    FROM original, here
    RETURNING id, priority, woken_at),
message AS (
    SELECT gen_random_uuid() AS message_id, id, priority, woken_at FROM created),
wake AS (
    INSERT INTO outbox (message_id, kind, job_id, created_at)
    SELECT message_id, 'ExportReady', id, clock_timestamp() FROM message),
ready AS (
    INSERT INTO outbox_claims (message_id, priority, ready_at)
    SELECT message_id, priority, woken_at FROM message)
SELECT id AS "id!" FROM message
