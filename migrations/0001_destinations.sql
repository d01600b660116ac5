-- Where jobs are delivered to. Every object belongs to waybill_owner; 0007 grants, nothing else does.

CREATE TABLE destinations (
    id               uuid PRIMARY KEY,
    tenant_id        uuid NOT NULL,
    name             text NOT NULL,
    partner          text NOT NULL,
    revision         integer NOT NULL,
    manifest         jsonb NOT NULL,
    contract         jsonb NOT NULL,
    rules            jsonb NOT NULL DEFAULT '{}',
    digests          jsonb NOT NULL DEFAULT '{}',
    endpoint         text NOT NULL,
    enabled          boolean NOT NULL DEFAULT true,
    attention_since  timestamptz,
    attention_why    text,
    paused_until     timestamptz,
    pause_failures   integer NOT NULL DEFAULT 0,
    probe_job_id     uuid,
    updated_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT uq_destinations_tenant UNIQUE (tenant_id, id),
    CONSTRAINT uq_destinations_name UNIQUE (tenant_id, name),
    CONSTRAINT ck_destinations_revision CHECK (revision >= 1),
    CONSTRAINT ck_destinations_attention CHECK ((attention_since IS NULL) = (attention_why IS NULL)),
    CONSTRAINT ck_destinations_pause CHECK (pause_failures >= 0)
);

COMMENT ON TABLE destinations IS 'One place at one partner to deliver to, joined from the partner''s bundle and the operator''s destinations.toml. A job is claimed only while its destination is here and enabled.';
COMMENT ON COLUMN destinations.id IS 'The destination''s identity, from destinations.toml; it never changes.';
COMMENT ON COLUMN destinations.tenant_id IS 'The tenant whose data goes there. A job of another tenant cannot name this destination.';
COMMENT ON COLUMN destinations.name IS 'The operator''s name for it, unique in the tenant.';
COMMENT ON COLUMN destinations.partner IS 'The partner whose bundle serves it.';
COMMENT ON COLUMN destinations.revision IS 'Revision of the manifest that is in force. A higher revision replaces the row; a lower one does not.';
COMMENT ON COLUMN destinations.manifest IS 'The partner.toml of that revision, as JSON.';
COMMENT ON COLUMN destinations.contract IS 'The contract of that revision. Cutoff 2 reads here whether final names are reused.';
COMMENT ON COLUMN destinations.rules IS 'What policy asks of jobs for this destination: rates, windows, scopes.';
COMMENT ON COLUMN destinations.digests IS 'SHA-256 of components, manifest, settings and contract of that revision.';
COMMENT ON COLUMN destinations.endpoint IS 'Host and port of the partner''s server, lower case. Final names are unique in an endpoint.';
COMMENT ON COLUMN destinations.enabled IS 'The operator''s switch. Off: its jobs stay queued and none is claimed.';
COMMENT ON COLUMN destinations.attention_since IS 'Since when a person has to mend something, such as a refused key; null: nothing. Policy defers its jobs meanwhile.';
COMMENT ON COLUMN destinations.attention_why IS 'What has to be mended, in a sentence without secrets.';
COMMENT ON COLUMN destinations.paused_until IS 'Until when policy defers its jobs because the partner could not be reached.';
COMMENT ON COLUMN destinations.pause_failures IS 'Failed connections in a row; the pause grows with it.';
COMMENT ON COLUMN destinations.probe_job_id IS 'The one job that may try the partner while it is paused.';
COMMENT ON COLUMN destinations.updated_at IS 'When a host last joined this row from its files.';

CREATE TABLE destination_checks (
    id                  uuid PRIMARY KEY,
    tenant_id           uuid NOT NULL,
    destination_id      uuid NOT NULL,
    requested_by        text NOT NULL,
    requested_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    taken_by            text,
    taken_until         timestamptz,
    finished_at         timestamptz,
    server              jsonb,
    server_fingerprint  text,
    proof               jsonb,
    problem             text,
    CONSTRAINT fk_destination_checks_destination FOREIGN KEY (tenant_id, destination_id)
        REFERENCES destinations (tenant_id, id),
    CONSTRAINT ck_destination_checks_taken CHECK ((taken_by IS NULL) = (taken_until IS NULL)),
    CONSTRAINT ck_destination_checks_result
        CHECK ((finished_at IS NULL AND proof IS NULL AND problem IS NULL) OR (finished_at IS NOT NULL AND (proof IS NULL) <> (problem IS NULL))),
    CONSTRAINT ck_destination_checks_proof CHECK (proof IS NULL OR (server IS NOT NULL AND server_fingerprint IS NOT NULL))
);
CREATE INDEX ix_destination_checks_open ON destination_checks (requested_at) WHERE finished_at IS NULL;
CREATE INDEX ix_destination_checks_latest ON destination_checks (destination_id, finished_at DESC) WHERE finished_at IS NOT NULL;

COMMENT ON TABLE destination_checks IS 'What a partner''s server was shown to do on scratch names. Asked for as a row, done by a worker; a publish uses only a form proven here for the server that answers.';
COMMENT ON COLUMN destination_checks.id IS 'The check''s own id.';
COMMENT ON COLUMN destination_checks.tenant_id IS 'The destination''s tenant.';
COMMENT ON COLUMN destination_checks.destination_id IS 'The destination that is checked.';
COMMENT ON COLUMN destination_checks.requested_by IS 'The person or host that asked for it.';
COMMENT ON COLUMN destination_checks.requested_at IS 'When it was asked for.';
COMMENT ON COLUMN destination_checks.taken_by IS 'The worker that is doing it.';
COMMENT ON COLUMN destination_checks.taken_until IS 'When another worker may take it over.';
COMMENT ON COLUMN destination_checks.finished_at IS 'When its result was recorded; null: not done yet.';
COMMENT ON COLUMN destination_checks.server IS 'Banner and extensions that the server announced.';
COMMENT ON COLUMN destination_checks.server_fingerprint IS 'Digest of banner and extensions. The proof holds only for a server with the same one.';
COMMENT ON COLUMN destination_checks.proof IS 'What link and rename did on scratch names, with the server''s reply codes.';
COMMENT ON COLUMN destination_checks.problem IS 'Why nothing could be proven, in a sentence that says what to mend.';
