-- store::policy_facts
WITH here AS MATERIALIZED (
    SELECT clock_timestamp() AS now)
SELECT job.status,
       job.version,
       job.tenant_id,
       job.destination_id,
       job.scope,
       coalesce(extract(epoch FROM job.not_before - here.now), 0)::float8 AS "starts_in!",
       destination.tenant_id AS destination_tenant_id,
       destination.name AS destination_name,
       destination.enabled,
       destination.attention_why,
       destination.pause_failures,
       coalesce(extract(epoch FROM here.now - destination.paused_at), 0)::float8 AS "paused_since!",
       coalesce(extract(epoch FROM destination.paused_until - here.now), 0)::float8 AS "paused_left!",
       probing.id AS "probing?",
       (extract(isodow FROM here.now AT TIME ZONE 'UTC') - 1)::integer AS "weekday!",
       floor(extract(epoch FROM (here.now AT TIME ZONE 'UTC')::time))::integer AS "second_of_day!",
       coalesce(load.started, 0) AS "started!",
       coalesce(extract(epoch FROM here.now - load.oldest), 0)::float8 AS "oldest_start!"
FROM here
CROSS JOIN export_jobs AS job
JOIN destinations AS destination ON destination.id = job.destination_id
LEFT JOIN export_jobs AS probing
    ON probing.id = destination.probe_job_id AND probing.id <> job.id
   AND (destination.probe_until > here.now OR (probing.status = 'Running' AND probing.lease_expires_at > here.now))
-- Without a period there is nothing to count: no time is later than none.
CROSS JOIN LATERAL (
    SELECT count(*) AS started, min(claimed.recorded_at) AS oldest
    FROM export_attempt_events AS claimed
    WHERE claimed.kind = 'Claimed'
      AND claimed.detail ->> 'destination_id' = job.destination_id::text
      AND claimed.recorded_at > here.now - make_interval(secs => $2)) AS load
WHERE job.id = $1
