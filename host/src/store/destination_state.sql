-- store::destination_state
SELECT destination.id,
       destination.tenant_id,
       destination.name,
       destination.partner,
       destination.revision,
       destination.digests,
       destination.enabled,
       destination.attention_since,
       destination.attention_why,
       destination.pause_failures,
       coalesce(extract(epoch FROM clock_timestamp() - destination.paused_at), 0)::float8 AS "paused_since!",
       coalesce(extract(epoch FROM destination.paused_until - clock_timestamp()), 0)::float8 AS "paused_left!",
       probing.id AS "probing?"
FROM destinations AS destination
-- Its place, or its current attempt, keeps a job the probe.
LEFT JOIN export_jobs AS probing
    ON probing.id = destination.probe_job_id
   AND (destination.probe_until > clock_timestamp()
        OR (probing.status = 'Running' AND probing.lease_expires_at > clock_timestamp()))
WHERE coalesce(destination.id = $1, true)
  AND coalesce(destination.tenant_id = $2, true)
ORDER BY destination.partner, destination.name
