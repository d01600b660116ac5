-- Least privilege, column by column. A later migration grants for its own tables; nothing is granted by default.
-- The schema itself is the administrator's: `waybill migrate` grants its use before it migrates.

-- Looking. The dispatcher sees what it routes by; tokens and idempotency keys are the API's alone.
GRANT SELECT ON _sqlx_migrations TO waybill_api, waybill_worker, waybill_dispatcher, waybill_recovery, waybill_reconciler, waybill_corrector, waybill_reader;
GRANT SELECT ON hosts TO waybill_api, waybill_worker, waybill_dispatcher, waybill_recovery, waybill_reconciler, waybill_corrector, waybill_reader;
GRANT SELECT ON
    export_jobs, deliveries, export_attempt_events, destinations, destination_checks, final_names, looks, accepted_losses,
    allowed_transitions, allowed_event_kinds
    TO waybill_api, waybill_worker, waybill_recovery, waybill_reconciler, waybill_corrector, waybill_reader;
GRANT SELECT (id, tenant_id, status, destination_id, priority) ON export_jobs TO waybill_dispatcher;
GRANT SELECT ON cancellation_requests TO waybill_api, waybill_corrector, waybill_reader;
GRANT SELECT ON outbox, outbox_claims TO waybill_api, waybill_dispatcher, waybill_reader;
GRANT SELECT ON outbox_requeues TO waybill_api, waybill_reader;
GRANT SELECT ON wakeups TO waybill_worker, waybill_dispatcher, waybill_reader;
GRANT SELECT ON audit TO waybill_api, waybill_corrector, waybill_reader;
GRANT SELECT ON idempotency_keys, api_tokens TO waybill_api;

-- Jobs.
GRANT INSERT (id, tenant_id, status, version, destination_id, scope, not_before, priority, delivery_key, replaces_job_id,
              created_by, replacement_reason, overwrite_agreement_ref, woken_at, known_system, known_timeline)
    ON export_jobs TO waybill_api;
GRANT UPDATE (status, version, destination_id, scope, not_before, priority, woken_at, stop_request_id, cancellation_request_id)
    ON export_jobs TO waybill_api;
GRANT UPDATE (status, attempt_id, attempt_count, claimed_by, lease_expires_at, expected_file_name, expected_file_bytes,
              expected_file_sha256, delivery_authorized_at, publish_intended_at, failure_reason, rejection, woken_at,
              known_system, known_timeline)
    ON export_jobs TO waybill_worker;
GRANT UPDATE (status, attempt_id, claimed_by, lease_expires_at, failure_reason, woken_at, sweep_count)
    ON export_jobs TO waybill_recovery;
GRANT UPDATE (status, failure_reason) ON export_jobs TO waybill_reconciler, waybill_corrector;

-- Histories: added to, never changed.
GRANT INSERT (tenant_id, delivery_key, original_job_id) ON deliveries TO waybill_api;
GRANT INSERT (job_id, attempt_id, kind, version, worker_id, observed_by, detail, recorded_at) ON export_attempt_events
    TO waybill_worker, waybill_recovery, waybill_reconciler, waybill_corrector;
GRANT INSERT (tenant_id, id, job_id, requested_by, reason, outcome, found_status, found_attempt_id, found_attempt_count,
              found_delivery_authorized_at)
    ON cancellation_requests TO waybill_api;
GRANT INSERT (message_id, requeued_by, reason, found) ON outbox_requeues TO waybill_api;
GRANT INSERT (tenant_id, actor, action, target, detail) ON audit TO waybill_api, waybill_corrector;
GRANT INSERT (job_id, system, timeline, standing, fences_intact, statement, accepted_by) ON accepted_losses TO waybill_corrector;

-- Wake-ups.
GRANT INSERT (message_id, kind, job_id, created_at) ON outbox TO waybill_api, waybill_worker, waybill_recovery;
GRANT UPDATE (published_at) ON outbox TO waybill_dispatcher;
GRANT INSERT (message_id, priority, ready_at) ON outbox_claims TO waybill_api, waybill_worker, waybill_recovery;
GRANT UPDATE (ready_at, owner, token, claimed_at, expires_at, claims, failures, last_error_code, dead_lettered_at,
              dead_reason_code, finished_at)
    ON outbox_claims TO waybill_dispatcher;
GRANT UPDATE (ready_at, claims, failures, dead_lettered_at, dead_reason_code) ON outbox_claims TO waybill_api;
GRANT INSERT (message_id, job_id, destination_id, priority, ready_at) ON wakeups TO waybill_dispatcher;
GRANT UPDATE (ready_at, taken_by, taken_token, taken_until, deliveries) ON wakeups TO waybill_worker;
GRANT DELETE ON wakeups TO waybill_worker;

-- Partners.
GRANT INSERT (id, tenant_id, name, partner, revision, manifest, contract, rules, digests, endpoint, updated_at)
    ON destinations TO waybill_worker;
GRANT UPDATE (name, revision, manifest, contract, rules, digests, endpoint, updated_at, attention_since, attention_why,
              paused_until, pause_failures, probe_job_id)
    ON destinations TO waybill_worker;
GRANT UPDATE (enabled, attention_since, attention_why, paused_until, pause_failures, probe_job_id) ON destinations TO waybill_api;
GRANT INSERT (id, tenant_id, destination_id, requested_by) ON destination_checks TO waybill_api, waybill_worker;
GRANT UPDATE (taken_by, taken_until, finished_at, server, server_fingerprint, proof, problem) ON destination_checks TO waybill_worker;
GRANT INSERT (endpoint, directory, folded_name, tenant_id, delivery_key, job_id, reused, held_since) ON final_names TO waybill_worker;
GRANT UPDATE (tenant_id, delivery_key, job_id, reused, held_since) ON final_names TO waybill_worker;
GRANT INSERT (job_id, attempt_id, purpose, next_at, until) ON looks TO waybill_worker, waybill_recovery, waybill_reconciler;
GRANT UPDATE (owner, token, expires_at) ON looks TO waybill_worker;
GRANT UPDATE (purpose, next_at, until, looks, owner, token, expires_at, last_found, ended_at) ON looks TO waybill_reconciler;
GRANT UPDATE (purpose, next_at, until, ended_at) ON looks TO waybill_corrector;

-- Clients and hosts.
GRANT INSERT (tenant_id, key, operation, fingerprint, started_by) ON idempotency_keys TO waybill_api;
GRANT UPDATE (answered_at, answer) ON idempotency_keys TO waybill_api;
GRANT INSERT (id, name, sha256, tenant_id, roles, created_by, expires_at) ON api_tokens TO waybill_api;
GRANT UPDATE (revoked_at, last_used_at) ON api_tokens TO waybill_api;
GRANT INSERT (id, version, roles, serves) ON hosts TO waybill_api, waybill_worker, waybill_dispatcher, waybill_recovery, waybill_reconciler;
GRANT UPDATE (roles, serves, seen_at, stopped_at) ON hosts TO waybill_api, waybill_worker, waybill_dispatcher, waybill_recovery, waybill_reconciler;
