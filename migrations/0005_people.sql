-- Clients, tokens, hosts, and who did what.

CREATE TABLE idempotency_keys (
    tenant_id    uuid NOT NULL,
    key          text NOT NULL,
    operation    text NOT NULL,
    fingerprint  bytea NOT NULL,
    started_by   text NOT NULL,
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    answered_at  timestamptz,
    answer       jsonb,
    CONSTRAINT pk_idempotency_keys PRIMARY KEY (tenant_id, key),
    CONSTRAINT ck_idempotency_keys_fingerprint CHECK (octet_length(fingerprint) = 32),
    CONSTRAINT ck_idempotency_keys_answer CHECK ((answered_at IS NULL) = (answer IS NULL))
);

COMMENT ON TABLE idempotency_keys IS 'Requests by the key that their client gave them, so that a repeated request gets the first one''s answer. Written before the work.';
COMMENT ON COLUMN idempotency_keys.tenant_id IS 'The tenant; keys are unique in it.';
COMMENT ON COLUMN idempotency_keys.key IS 'The client''s key.';
COMMENT ON COLUMN idempotency_keys.operation IS 'What was asked for.';
COMMENT ON COLUMN idempotency_keys.fingerprint IS 'SHA-256 of the request''s content. The same key with other content is an error.';
COMMENT ON COLUMN idempotency_keys.started_by IS 'The principal that asked.';
COMMENT ON COLUMN idempotency_keys.started_at IS 'When work began.';
COMMENT ON COLUMN idempotency_keys.answered_at IS 'When the answer was recorded; null: still in flight, or its process died.';
COMMENT ON COLUMN idempotency_keys.answer IS 'The answer that is given again.';

CREATE TABLE hosts (
    id          text PRIMARY KEY,
    version     text NOT NULL,
    roles       text[] NOT NULL,
    serves      jsonb NOT NULL DEFAULT '[]',
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    stopped_at  timestamptz
);

COMMENT ON TABLE hosts IS 'Processes of the installation, with their last sign of life.';
COMMENT ON COLUMN hosts.id IS 'Unique to a process: host name, process id and start.';
COMMENT ON COLUMN hosts.version IS 'Version of the program.';
COMMENT ON COLUMN hosts.roles IS 'What the process does: api, worker, dispatcher, recovery, reconciler.';
COMMENT ON COLUMN hosts.serves IS 'Destinations and bundle revisions that it can serve, and bundles that it refused with the reason.';
COMMENT ON COLUMN hosts.started_at IS 'When it started.';
COMMENT ON COLUMN hosts.seen_at IS 'Its last sign of life, also when there is nothing to do.';
COMMENT ON COLUMN hosts.stopped_at IS 'When it stopped in good order.';

CREATE TABLE api_tokens (
    id            uuid PRIMARY KEY,
    name          text NOT NULL,
    sha256        bytea NOT NULL UNIQUE,
    tenant_id     uuid,
    roles         text[] NOT NULL,
    created_by    text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at    timestamptz,
    revoked_at    timestamptz,
    last_used_at  timestamptz,
    CONSTRAINT ck_api_tokens_sha256 CHECK (octet_length(sha256) = 32)
);

COMMENT ON TABLE api_tokens IS 'Bearer tokens. Only their digests are stored.';
COMMENT ON COLUMN api_tokens.id IS 'The token''s id, which may be shown.';
COMMENT ON COLUMN api_tokens.name IS 'What or who it is for; it appears as the actor.';
COMMENT ON COLUMN api_tokens.sha256 IS 'SHA-256 of the token.';
COMMENT ON COLUMN api_tokens.tenant_id IS 'The tenant it is good for; null: every tenant.';
COMMENT ON COLUMN api_tokens.roles IS 'What it may do: reader, creator, operator, replacer, reconciler, admin.';
COMMENT ON COLUMN api_tokens.created_by IS 'Who made it.';
COMMENT ON COLUMN api_tokens.created_at IS 'When.';
COMMENT ON COLUMN api_tokens.expires_at IS 'When it ends by itself.';
COMMENT ON COLUMN api_tokens.revoked_at IS 'When it was ended by a person.';
COMMENT ON COLUMN api_tokens.last_used_at IS 'About when it was used last.';

CREATE TABLE audit (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id    uuid,
    actor        text NOT NULL,
    action       text NOT NULL,
    target       text NOT NULL,
    detail       jsonb NOT NULL DEFAULT '{}',
    recorded_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT ck_audit_words CHECK (actor <> '' AND action <> '' AND target <> '')
);
CREATE INDEX ix_audit_target ON audit (target, id);
CREATE INDEX ix_audit_tenant ON audit (tenant_id, id);

COMMENT ON TABLE audit IS 'What people and clients did that no other history tells. Append-only.';
COMMENT ON COLUMN audit.id IS 'Order of insertion.';
COMMENT ON COLUMN audit.tenant_id IS 'The tenant it concerns; null: the installation.';
COMMENT ON COLUMN audit.actor IS 'Who did it.';
COMMENT ON COLUMN audit.action IS 'What was done, in the API''s verb.';
COMMENT ON COLUMN audit.target IS 'What it was done to: an id.';
COMMENT ON COLUMN audit.detail IS 'What changed. Never personal data, never secrets.';
COMMENT ON COLUMN audit.recorded_at IS 'When.';
