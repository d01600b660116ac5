-- store::claim_outbox
-- The clock stands in a subquery, so that it is read once and the index can be asked by it. What is locked as due stays so
-- until the statement ends: the lock is taken on the newest version of the row, which is asked again.
WITH due AS (
    SELECT message_id
    FROM outbox_claims
    WHERE finished_at IS NULL
      AND dead_lettered_at IS NULL
      AND ready_at <= (SELECT clock_timestamp())
      AND (expires_at IS NULL OR expires_at <= clock_timestamp())
    ORDER BY priority DESC, ready_at, message_id
    LIMIT $3
    FOR UPDATE SKIP LOCKED),
claimed AS (
    UPDATE outbox_claims AS entry
    SET owner = $1,
        token = $2,
        claimed_at = clock_timestamp(),
        expires_at = clock_timestamp() + make_interval(secs => $4),
        claims = entry.claims + 1
    FROM due
    WHERE entry.message_id = due.message_id
    RETURNING entry.message_id, entry.priority, entry.ready_at, entry.claims, entry.failures)
SELECT claimed.message_id AS "message_id!",
       outbox.job_id AS "job_id!",
       claimed.claims AS "claims!",
       claimed.failures AS "failures!"
FROM claimed
JOIN outbox ON outbox.message_id = claimed.message_id
ORDER BY claimed.priority DESC, claimed.ready_at, claimed.message_id
