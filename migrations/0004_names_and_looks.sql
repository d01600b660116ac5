-- Who holds which final name, when to look at a partner again, and what a person accepted after a lost database.

CREATE TABLE final_names (
    endpoint      text NOT NULL,
    directory     text NOT NULL,
    folded_name   text NOT NULL,
    tenant_id     uuid NOT NULL,
    delivery_key  text NOT NULL,
    job_id        uuid NOT NULL REFERENCES export_jobs (id),
    reused        boolean NOT NULL DEFAULT false,
    held_since    timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_final_names PRIMARY KEY (endpoint, directory, folded_name),
    CONSTRAINT fk_final_names_delivery FOREIGN KEY (tenant_id, delivery_key) REFERENCES deliveries (tenant_id, delivery_key),
    -- Together they must fit into an entry of the index.
    CONSTRAINT ck_final_names_size CHECK (octet_length(endpoint) <= 300 AND octet_length(directory) <= 1024 AND octet_length(folded_name) <= 800)
);
CREATE INDEX ix_final_names_key ON final_names (tenant_id, delivery_key);

COMMENT ON TABLE final_names IS 'Which delivery key holds which final name at a partner''s server, across destinations and tenants. Written by cutoff 2; held for good unless the contract says that names are reused.';
COMMENT ON COLUMN final_names.endpoint IS 'Host and port of the partner''s server, lower case.';
COMMENT ON COLUMN final_names.directory IS 'The directory as the server resolves it, joined with the name''s own folders, letter case folded.';
COMMENT ON COLUMN final_names.folded_name IS 'The name''s last part, letter case folded.';
COMMENT ON COLUMN final_names.tenant_id IS 'The holder''s tenant.';
COMMENT ON COLUMN final_names.delivery_key IS 'The holder''s delivery key.';
COMMENT ON COLUMN final_names.job_id IS 'The job that was authorized last under this name.';
COMMENT ON COLUMN final_names.reused IS 'True if the holder''s contract said so at its cutoff 2. Handed on once both contracts say so and every job of the holder is settled.';
COMMENT ON COLUMN final_names.held_since IS 'Since when this key holds it.';

CREATE TABLE looks (
    job_id       uuid NOT NULL,
    attempt_id   uuid NOT NULL,
    purpose      text NOT NULL,
    next_at      timestamptz NOT NULL,
    until        timestamptz,
    looks        integer NOT NULL DEFAULT 0,
    owner        text,
    token        uuid,
    expires_at   timestamptz,
    last_found   jsonb,
    ended_at     timestamptz,
    CONSTRAINT pk_looks PRIMARY KEY (job_id, attempt_id),
    CONSTRAINT fk_looks_job FOREIGN KEY (job_id) REFERENCES export_jobs (id),
    CONSTRAINT ck_looks_purpose CHECK (purpose IN ('outcome', 'acknowledgment')),
    CONSTRAINT ck_looks_lease CHECK (num_nonnulls(owner, token, expires_at) IN (0, 3)),
    CONSTRAINT ck_looks_count CHECK (looks >= 0),
    CONSTRAINT ck_looks_ended CHECK (ended_at IS NULL OR token IS NULL)
);
CREATE INDEX ix_looks_next ON looks (next_at) WHERE ended_at IS NULL;

COMMENT ON TABLE looks IS 'When to look at the partner again: for an unknown outcome, or for an acknowledgment that may still come. One reconciler at a time works on an attempt.';
COMMENT ON COLUMN looks.job_id IS 'The job.';
COMMENT ON COLUMN looks.attempt_id IS 'The attempt whose file is looked for.';
COMMENT ON COLUMN looks.purpose IS 'outcome: until the outcome is settled. acknowledgment: until the contract''s period ends.';
COMMENT ON COLUMN looks.next_at IS 'When the next look is due; intervals grow.';
COMMENT ON COLUMN looks.until IS 'When looking for an acknowledgment ends.';
COMMENT ON COLUMN looks.looks IS 'Looks so far.';
COMMENT ON COLUMN looks.owner IS 'Who is looking, for people.';
COMMENT ON COLUMN looks.token IS 'New for each lease; its writes ask for it.';
COMMENT ON COLUMN looks.expires_at IS 'When another reconciler may take it over.';
COMMENT ON COLUMN looks.last_found IS 'What the last look found; evidence is appended only when this changes.';
COMMENT ON COLUMN looks.ended_at IS 'When looking ended; null: it goes on.';

CREATE TABLE accepted_losses (
    id                  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id              uuid REFERENCES export_jobs (id),
    system              bigint NOT NULL,
    timeline            bigint NOT NULL,
    standing            boolean NOT NULL DEFAULT false,
    fences_intact       boolean NOT NULL,
    statement           text NOT NULL,
    accepted_by         text NOT NULL,
    recorded_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT ck_accepted_losses_words CHECK (statement <> '' AND accepted_by <> ''),
    CONSTRAINT ck_accepted_losses_standing CHECK (NOT standing OR job_id IS NULL)
);

COMMENT ON TABLE accepted_losses IS 'What a person said was lost after a failover or restore, so that jobs known from before may move again. Append-only; written by waybill database accept.';
COMMENT ON COLUMN accepted_losses.id IS 'Order of insertion.';
COMMENT ON COLUMN accepted_losses.job_id IS 'The one job it is about; null: all.';
COMMENT ON COLUMN accepted_losses.system IS 'System identifier of the database in which it was accepted.';
COMMENT ON COLUMN accepted_losses.timeline IS 'Its timeline. A later failover needs a new acceptance.';
COMMENT ON COLUMN accepted_losses.standing IS 'The standby is synchronous: later timelines of the same system are accepted too.';
COMMENT ON COLUMN accepted_losses.fences_intact IS 'No publish fence was lost, so that an absent fence proves again that nothing was published.';
COMMENT ON COLUMN accepted_losses.statement IS 'What was lost, in the person''s words.';
COMMENT ON COLUMN accepted_losses.accepted_by IS 'The person.';
COMMENT ON COLUMN accepted_losses.recorded_at IS 'When.';

-- The timeline is read from the name of the log segment being written: the control file's lags behind a promotion.
CREATE FUNCTION database_history(OUT system bigint, OUT timeline bigint) LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT control.system_identifier,
           ('x' || lpad(substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), 16, '0'))::bit(64)::bigint
    FROM pg_control_system() AS control;
END;
COMMENT ON FUNCTION database_history() IS 'System identifier and timeline of this database. They change when commits may have been lost.';

CREATE FUNCTION history_is_known(job uuid, known_system bigint, known_timeline bigint, as_proof boolean)
    RETURNS boolean LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT (here.system = known_system AND here.timeline = known_timeline)
        OR EXISTS (SELECT FROM accepted_losses AS accepted
                   WHERE (accepted.job_id IS NULL OR accepted.job_id = job)
                     AND accepted.system = here.system
                     AND (accepted.timeline = here.timeline OR accepted.standing)
                     AND (accepted.fences_intact OR NOT as_proof))
    FROM database_history() AS here;
END;
COMMENT ON FUNCTION history_is_known(uuid, bigint, bigint, boolean) IS 'True if the row was written in this database''s own history, or a person accepted the loss; as_proof asks for an acceptance that says no fence was lost.';
