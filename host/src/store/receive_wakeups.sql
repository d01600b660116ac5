-- store::receive_wakeups
-- Each destination offers its first few by the index, so that a long backlog costs no more than a short one; more than
-- are asked for, so that those which other workers lock at this moment can be passed over.
WITH offered AS MATERIALIZED (
    SELECT first.message_id
    FROM unnest($3::uuid[]) AS served (id)
    CROSS JOIN LATERAL (
        SELECT message_id, priority, ready_at
        FROM wakeups
        WHERE destination_id = served.id
          AND ready_at <= (SELECT clock_timestamp())
          AND (taken_until IS NULL OR taken_until <= clock_timestamp())
        ORDER BY priority DESC, ready_at
        LIMIT 2 * $4::bigint) AS first
    ORDER BY first.priority DESC, first.ready_at
    LIMIT 2 * $4::bigint),
ready AS (
    SELECT wakeup.message_id
    FROM wakeups AS wakeup
    JOIN offered ON offered.message_id = wakeup.message_id
    -- Asked again under the lock. One that was handed back with a delay since may come too early once, which costs a look.
    WHERE (wakeup.taken_until IS NULL OR wakeup.taken_until <= clock_timestamp())
    ORDER BY wakeup.priority DESC, wakeup.ready_at
    LIMIT $4::bigint
    FOR UPDATE OF wakeup SKIP LOCKED),
taken AS (
    UPDATE wakeups AS wakeup
    SET taken_by = $1,
        taken_token = $2,
        taken_until = clock_timestamp() + make_interval(secs => $5),
        deliveries = wakeup.deliveries + 1
    FROM ready
    WHERE wakeup.message_id = ready.message_id
    RETURNING wakeup.message_id, wakeup.job_id, wakeup.destination_id, wakeup.priority, wakeup.ready_at, wakeup.deliveries)
SELECT message_id AS "message_id!",
       job_id AS "job_id!",
       destination_id AS "destination_id!",
       deliveries AS "deliveries!"
FROM taken
ORDER BY priority DESC, ready_at
