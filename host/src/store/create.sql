-- store::create
WITH here AS (
    SELECT system, timeline FROM database_history()),
minted AS (
    INSERT INTO deliveries (tenant_id, delivery_key, original_job_id) VALUES ($2, $7, $1)),
created AS (
    INSERT INTO export_jobs (id, tenant_id, status, version, destination_id, scope, not_before, priority, delivery_key,
                             created_by, woken_at, known_system, known_timeline)
    SELECT $1, $2, 'Queued', 1, $3, $4, $5, $6, $7, $8, greatest(clock_timestamp(), $5), here.system, here.timeline
    FROM here
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
