-- Jobs, delivery keys, and the two histories.

CREATE TABLE export_jobs (
    id                       uuid PRIMARY KEY,
    tenant_id                uuid NOT NULL,
    status                   text NOT NULL,
    version                  integer NOT NULL,
    destination_id           uuid NOT NULL,
    scope                    jsonb NOT NULL DEFAULT '{}',
    not_before               timestamptz,
    priority                 smallint NOT NULL DEFAULT 0,
    attempt_id               uuid,
    attempt_count            integer NOT NULL DEFAULT 0,
    claimed_by               text,
    lease_expires_at         timestamptz,
    stop_request_id          uuid,
    cancellation_request_id  uuid,
    expected_file_name       text,
    expected_file_bytes      bigint,
    expected_file_sha256     bytea,
    delivery_authorized_at   timestamptz,
    publish_intended_at      timestamptz,
    woken_at                 timestamptz NOT NULL,
    failure_reason           text,
    rejection                jsonb,
    delivery_key             text NOT NULL,
    replaces_job_id          uuid,
    created_by               text NOT NULL,
    created_at               timestamptz NOT NULL DEFAULT clock_timestamp(),
    replacement_reason       text,
    overwrite_agreement_ref  text,
    sweep_count              integer NOT NULL DEFAULT 0,
    known_system             bigint NOT NULL,
    known_timeline           bigint NOT NULL,
    CONSTRAINT uq_export_jobs_tenant UNIQUE (tenant_id, id),
    CONSTRAINT fk_export_jobs_destination FOREIGN KEY (tenant_id, destination_id) REFERENCES destinations (tenant_id, id),
    CONSTRAINT ck_export_jobs_status CHECK (status IN ('Queued', 'Running', 'Delivering', 'Canceled', 'Rejected',
        'Stopped', 'Failed', 'Completed', 'OutcomeUnknown')),
    CONSTRAINT ck_export_jobs_failure_code CHECK (failure_reason IN ('BuildFailed', 'AttemptsExhausted', 'NotDelivered',
        'FinalNameOccupied', 'OriginalDelivered')),
    CONSTRAINT ck_export_jobs_failure CHECK ((status = 'Failed') = (failure_reason IS NOT NULL)),
    CONSTRAINT ck_export_jobs_rejection CHECK ((status = 'Rejected') = (rejection IS NOT NULL)),
    CONSTRAINT ck_export_jobs_replacement CHECK ((replaces_job_id IS NULL) = (replacement_reason IS NULL)),
    CONSTRAINT ck_export_jobs_overwrite CHECK (overwrite_agreement_ref IS NULL OR replaces_job_id IS NOT NULL),
    CONSTRAINT ck_export_jobs_counts CHECK (version >= 1 AND attempt_count >= 0 AND sweep_count >= 0),
    -- An attempt owns the row exactly while it works; a terminal state keeps its id for audit.
    CONSTRAINT ck_export_jobs_lease CHECK ((status IN ('Running', 'Delivering')) = (lease_expires_at IS NOT NULL)),
    CONSTRAINT ck_export_jobs_attempt CHECK (CASE
        WHEN status IN ('Queued', 'Canceled', 'Rejected') THEN attempt_id IS NULL AND claimed_by IS NULL
        ELSE attempt_id IS NOT NULL AND claimed_by IS NOT NULL AND attempt_count >= 1 END),
    CONSTRAINT ck_export_jobs_canceled CHECK ((status = 'Canceled') = (cancellation_request_id IS NOT NULL)),
    CONSTRAINT ck_export_jobs_stopped CHECK (status <> 'Stopped' OR stop_request_id IS NOT NULL),
    CONSTRAINT ck_export_jobs_stop_queued CHECK (stop_request_id IS NULL OR status NOT IN ('Queued', 'Canceled', 'Rejected', 'Delivering')),
    -- Cutoff 2 records all expected facts at once; nothing past it exists without them.
    CONSTRAINT ck_export_jobs_expected CHECK (num_nonnulls(expected_file_name, expected_file_bytes, expected_file_sha256,
        delivery_authorized_at) IN (0, 4)),
    CONSTRAINT ck_export_jobs_expected_values CHECK (expected_file_bytes >= 0 AND octet_length(expected_file_sha256) = 32
        AND expected_file_name <> ''),
    CONSTRAINT ck_export_jobs_authorized CHECK (CASE
        WHEN status IN ('Delivering', 'Completed', 'OutcomeUnknown') THEN delivery_authorized_at IS NOT NULL
        WHEN status = 'Failed' THEN true
        ELSE delivery_authorized_at IS NULL END),
    CONSTRAINT ck_export_jobs_intended CHECK (publish_intended_at IS NULL OR delivery_authorized_at IS NOT NULL)
);

COMMENT ON TABLE export_jobs IS 'One export, one expected file, to be delivered once. The row carries the work; a message only wakes a worker.';
COMMENT ON COLUMN export_jobs.id IS 'The job''s identity, unique everywhere.';
COMMENT ON COLUMN export_jobs.tenant_id IS 'The tenant whose export it is. It never changes.';
COMMENT ON COLUMN export_jobs.status IS 'Where the job stands. Who may move it from where to where is in allowed_transitions.';
COMMENT ON COLUMN export_jobs.version IS 'Version of the terms (destination, scope, not_before). Every edit raises it by one, and a claim asks for the version that policy evaluated.';
COMMENT ON COLUMN export_jobs.destination_id IS 'A term: where the file goes.';
COMMENT ON COLUMN export_jobs.scope IS 'A term: what is exported, as the builder understands it.';
COMMENT ON COLUMN export_jobs.not_before IS 'A term: the job is not claimed before this time of the database''s clock.';
COMMENT ON COLUMN export_jobs.priority IS 'Higher is woken earlier.';
COMMENT ON COLUMN export_jobs.attempt_id IS 'The attempt that owns the job, or that owned it last when it ended; null while queued. Every later write of an attempt asks for it.';
COMMENT ON COLUMN export_jobs.attempt_count IS 'How often the job was claimed.';
COMMENT ON COLUMN export_jobs.claimed_by IS 'The worker that claimed the current or last attempt.';
COMMENT ON COLUMN export_jobs.lease_expires_at IS 'When recovery may take the attempt over. Expiry alone ends nothing.';
COMMENT ON COLUMN export_jobs.stop_request_id IS 'The first cancellation request that found the job running. Once it is here, cutoff 2 refuses.';
COMMENT ON COLUMN export_jobs.cancellation_request_id IS 'The cancellation request that ended the job while it was queued.';
COMMENT ON COLUMN export_jobs.expected_file_name IS 'Recorded at cutoff 2: the final name, relative to the destination''s directory.';
COMMENT ON COLUMN export_jobs.expected_file_bytes IS 'Recorded at cutoff 2: the file''s size in bytes.';
COMMENT ON COLUMN export_jobs.expected_file_sha256 IS 'Recorded at cutoff 2: the file''s SHA-256.';
COMMENT ON COLUMN export_jobs.delivery_authorized_at IS 'About when cutoff 2 was crossed. The order of commits decides, not this time.';
COMMENT ON COLUMN export_jobs.publish_intended_at IS 'Set by the publish fence before the first request that could create the final name. Null on an attempt that lost the job: it did not write that name and never will.';
COMMENT ON COLUMN export_jobs.woken_at IS 'When the last wake-up for this job was written or becomes ready. The sweeper counts from here.';
COMMENT ON COLUMN export_jobs.failure_reason IS 'Why the job is Failed, as a code; null in every other state.';
COMMENT ON COLUMN export_jobs.rejection IS 'Why policy said no; null unless the job is Rejected.';
COMMENT ON COLUMN export_jobs.delivery_key IS 'What the partner knows the delivery by. The final name is built from it; a replacement carries its original''s.';
COMMENT ON COLUMN export_jobs.replaces_job_id IS 'On a replacement: the original. Never another replacement.';
COMMENT ON COLUMN export_jobs.created_by IS 'The person or client that created the job.';
COMMENT ON COLUMN export_jobs.created_at IS 'When the job was created.';
COMMENT ON COLUMN export_jobs.replacement_reason IS 'On a replacement: why, in its creator''s words.';
COMMENT ON COLUMN export_jobs.overwrite_agreement_ref IS 'On a replacement: where the partner''s agreement to an overwrite is recorded. Without it the replacement overwrites nothing.';
COMMENT ON COLUMN export_jobs.sweep_count IS 'How often the sweeper had to wake the job again. A count that keeps rising needs a look.';
COMMENT ON COLUMN export_jobs.known_system IS 'System identifier of the database in which the job was created or last claimed.';
COMMENT ON COLUMN export_jobs.known_timeline IS 'Timeline of that database. After a failover or restore it differs, and the job waits until a person says what was lost.';

CREATE TABLE deliveries (
    tenant_id        uuid NOT NULL,
    delivery_key     text NOT NULL,
    original_job_id  uuid NOT NULL,
    CONSTRAINT pk_deliveries PRIMARY KEY (tenant_id, delivery_key),
    CONSTRAINT uq_deliveries_original UNIQUE (tenant_id, delivery_key, original_job_id),
    CONSTRAINT fk_deliveries_original FOREIGN KEY (tenant_id, original_job_id) REFERENCES export_jobs (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT ck_deliveries_key CHECK (delivery_key <> '' AND octet_length(delivery_key) <= 200)
);

COMMENT ON TABLE deliveries IS 'Each delivery key once, with the job that minted it. Append-only.';
COMMENT ON COLUMN deliveries.tenant_id IS 'The tenant; keys are unique in it.';
COMMENT ON COLUMN deliveries.delivery_key IS 'What the partner knows the delivery by.';
COMMENT ON COLUMN deliveries.original_job_id IS 'The original job of the key. Replacements name it.';

ALTER TABLE export_jobs
    ADD CONSTRAINT fk_export_jobs_delivery FOREIGN KEY (tenant_id, delivery_key) REFERENCES deliveries (tenant_id, delivery_key),
    ADD CONSTRAINT fk_export_jobs_replaces FOREIGN KEY (tenant_id, delivery_key, replaces_job_id)
        REFERENCES deliveries (tenant_id, delivery_key, original_job_id);

-- Only an original mints a key.
CREATE UNIQUE INDEX uq_export_jobs_original_key ON export_jobs (tenant_id, delivery_key) WHERE replaces_job_id IS NULL;
-- One replacement of an original at a time. It keeps the slot for good once it delivered, may have, or found the original's file.
CREATE UNIQUE INDEX uq_export_jobs_one_replacement ON export_jobs (tenant_id, replaces_job_id)
    WHERE replaces_job_id IS NOT NULL
      AND (status NOT IN ('Canceled', 'Rejected', 'Stopped', 'Failed') OR failure_reason = 'OriginalDelivered');
CREATE INDEX ix_export_jobs_key ON export_jobs (tenant_id, delivery_key);
CREATE INDEX ix_export_jobs_lease ON export_jobs (lease_expires_at) WHERE status IN ('Running', 'Delivering');
CREATE INDEX ix_export_jobs_woken ON export_jobs (woken_at) WHERE status = 'Queued';
CREATE INDEX ix_export_jobs_stop ON export_jobs (attempt_id) WHERE status = 'Running' AND stop_request_id IS NOT NULL;
CREATE INDEX ix_export_jobs_unknown ON export_jobs (id) WHERE status = 'OutcomeUnknown';
CREATE INDEX ix_export_jobs_newest ON export_jobs (tenant_id, created_at DESC, id DESC);
CREATE INDEX ix_export_jobs_live ON export_jobs (destination_id, status) WHERE status IN ('Queued', 'Running', 'Delivering', 'OutcomeUnknown');

CREATE TABLE export_attempt_events (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id       uuid NOT NULL REFERENCES export_jobs (id),
    attempt_id   uuid NOT NULL,
    kind         text NOT NULL,
    version      integer,
    worker_id    text,
    observed_by  text,
    detail       jsonb,
    recorded_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT ck_export_attempt_events_kind CHECK (kind IN ('Claimed', 'DeliveryAuthorized', 'PublishIntended', 'Stopped',
        'Failed', 'Finished', 'ReleasedByWorker', 'RequeuedByRecovery', 'StoppedByRecovery', 'AttemptsExhausted',
        'ResolvedByRecovery', 'Reconciled', 'Corrected', 'DeliveryEvidence')),
    CONSTRAINT ck_export_attempt_events_claimed CHECK (kind <> 'Claimed'
        OR (version IS NOT NULL AND worker_id IS NOT NULL AND detail IS NOT NULL)),
    CONSTRAINT ck_export_attempt_events_observed CHECK (kind NOT IN ('StoppedByRecovery', 'RequeuedByRecovery',
        'ResolvedByRecovery', 'Reconciled', 'Corrected', 'DeliveryEvidence') OR observed_by IS NOT NULL),
    CONSTRAINT ck_export_attempt_events_proof CHECK (kind NOT IN ('PublishIntended', 'Finished', 'ResolvedByRecovery',
        'Reconciled', 'Corrected', 'DeliveryEvidence') OR detail IS NOT NULL)
);
-- A transition happens at most once an attempt; evidence may be appended many times.
CREATE UNIQUE INDEX uq_attempt_transition ON export_attempt_events (job_id, attempt_id, kind) WHERE kind <> 'DeliveryEvidence';
-- An attempt id is minted for one claim of one job and never used again.
CREATE UNIQUE INDEX uq_attempt_claimed ON export_attempt_events (attempt_id) WHERE kind = 'Claimed';
CREATE INDEX ix_export_attempt_events_job ON export_attempt_events (job_id, id);

COMMENT ON TABLE export_attempt_events IS 'What happened to each attempt, with its proof. Append-only: no login may update or delete.';
COMMENT ON COLUMN export_attempt_events.id IS 'Order of insertion; not the order of commits.';
COMMENT ON COLUMN export_attempt_events.job_id IS 'The job.';
COMMENT ON COLUMN export_attempt_events.attempt_id IS 'The attempt that it is about.';
COMMENT ON COLUMN export_attempt_events.kind IS 'What happened. Who may record which kind is in allowed_event_kinds.';
COMMENT ON COLUMN export_attempt_events.version IS 'Version of the terms that the claim checked.';
COMMENT ON COLUMN export_attempt_events.worker_id IS 'The worker that did it.';
COMMENT ON COLUMN export_attempt_events.observed_by IS 'Who saw it: a worker, a recovery or reconciler run, or a named person.';
COMMENT ON COLUMN export_attempt_events.detail IS 'The proof or the evidence: digests, publish form, listings, reasons. Never personal data.';
COMMENT ON COLUMN export_attempt_events.recorded_at IS 'When it was recorded, by the database''s clock.';

CREATE TABLE cancellation_requests (
    tenant_id                     uuid NOT NULL,
    id                            uuid NOT NULL,
    job_id                        uuid NOT NULL,
    requested_by                  text NOT NULL,
    reason                        text,
    outcome                       text NOT NULL,
    found_status                  text NOT NULL,
    found_attempt_id              uuid,
    found_attempt_count           integer NOT NULL,
    found_delivery_authorized_at  timestamptz,
    recorded_at                   timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_cancellation_requests PRIMARY KEY (tenant_id, id),
    CONSTRAINT fk_cancellation_requests_job FOREIGN KEY (tenant_id, job_id) REFERENCES export_jobs (tenant_id, id),
    CONSTRAINT ck_cancellation_requests_outcome CHECK (CASE outcome
        WHEN 'CanceledWhileQueued' THEN found_status = 'Queued'
        WHEN 'StopRequested' THEN found_status = 'Running'
        WHEN 'StopAlreadyRequested' THEN found_status = 'Running'
        WHEN 'AlreadyCanceled' THEN found_status = 'Canceled'
        WHEN 'AlreadyEnded' THEN found_status IN ('Rejected', 'Stopped', 'Failed')
        WHEN 'TooLate' THEN found_status IN ('Delivering', 'Completed', 'OutcomeUnknown')
        ELSE false END)
);
CREATE INDEX ix_cancellation_requests_job ON cancellation_requests (tenant_id, job_id, recorded_at);

-- Both are set in the transaction that records the request, so the reference is looked up at commit.
ALTER TABLE export_jobs
    ADD CONSTRAINT fk_export_jobs_stop_request FOREIGN KEY (tenant_id, stop_request_id)
        REFERENCES cancellation_requests (tenant_id, id) DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT fk_export_jobs_cancellation_request FOREIGN KEY (tenant_id, cancellation_request_id)
        REFERENCES cancellation_requests (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;

COMMENT ON TABLE cancellation_requests IS 'Every cancellation that was asked for, with what was found under the row''s lock and what came of it. Append-only.';
COMMENT ON COLUMN cancellation_requests.tenant_id IS 'The tenant; request ids are unique in it.';
COMMENT ON COLUMN cancellation_requests.id IS 'Minted by the client, once a click. A repeated click gets the recorded answer.';
COMMENT ON COLUMN cancellation_requests.job_id IS 'The job that was to be canceled.';
COMMENT ON COLUMN cancellation_requests.requested_by IS 'Who asked.';
COMMENT ON COLUMN cancellation_requests.reason IS 'Why, in their words. A repeated click does not change it.';
COMMENT ON COLUMN cancellation_requests.outcome IS 'What came of it: CanceledWhileQueued, StopRequested, StopAlreadyRequested, AlreadyCanceled, AlreadyEnded or TooLate.';
COMMENT ON COLUMN cancellation_requests.found_status IS 'The job''s status under the lock, before this request changed anything.';
COMMENT ON COLUMN cancellation_requests.found_attempt_id IS 'The attempt that was found.';
COMMENT ON COLUMN cancellation_requests.found_attempt_count IS 'How often the job had been claimed.';
COMMENT ON COLUMN cancellation_requests.found_delivery_authorized_at IS 'When cutoff 2 had been crossed, if it had.';
COMMENT ON COLUMN cancellation_requests.recorded_at IS 'When the request was recorded.';
