-- Wake-ups: the outbox, its drain, and the broker that is the database itself.

CREATE TABLE outbox (
    message_id    uuid PRIMARY KEY,
    kind          text NOT NULL,
    job_id        uuid NOT NULL,
    created_at    timestamptz NOT NULL,
    published_at  timestamptz,
    CONSTRAINT ck_outbox_kind CHECK (kind = 'ExportReady')
);
CREATE INDEX ix_outbox_job ON outbox (job_id, created_at);

COMMENT ON TABLE outbox IS 'Wake-ups to be handed to the broker. Insert-only but for published_at.';
COMMENT ON COLUMN outbox.message_id IS 'The message''s id at the broker: new for each row, reused only for this row''s retry.';
COMMENT ON COLUMN outbox.kind IS 'What the message says; ExportReady wakes a job.';
COMMENT ON COLUMN outbox.job_id IS 'The job to look at.';
COMMENT ON COLUMN outbox.created_at IS 'When it was written.';
COMMENT ON COLUMN outbox.published_at IS 'When the broker had acknowledged it.';

CREATE TABLE outbox_claims (
    message_id        uuid PRIMARY KEY REFERENCES outbox (message_id),
    priority          smallint NOT NULL DEFAULT 0,
    ready_at          timestamptz NOT NULL,
    owner             text,
    token             uuid,
    claimed_at        timestamptz,
    expires_at        timestamptz,
    claims            integer NOT NULL DEFAULT 0,
    failures          integer NOT NULL DEFAULT 0,
    last_error_code   text,
    dead_lettered_at  timestamptz,
    dead_reason_code  text,
    finished_at       timestamptz,
    CONSTRAINT ck_outbox_claims_claim CHECK (num_nonnulls(owner, token, claimed_at, expires_at) IN (0, 4)),
    CONSTRAINT ck_outbox_claims_counts CHECK (claims >= 0 AND failures >= 0),
    CONSTRAINT ck_outbox_claims_dead CHECK ((dead_lettered_at IS NULL) = (dead_reason_code IS NULL)),
    CONSTRAINT ck_outbox_claims_end CHECK (num_nonnulls(dead_lettered_at, finished_at) <= 1),
    CONSTRAINT ck_outbox_claims_released CHECK (num_nonnulls(dead_lettered_at, finished_at) = 0 OR token IS NULL)
);
-- Neither finished nor dead: a claim looks here only, so old and dead rows cost it nothing.
CREATE INDEX ix_outbox_claims_live ON outbox_claims (priority DESC, ready_at, message_id)
    WHERE finished_at IS NULL AND dead_lettered_at IS NULL;
CREATE INDEX ix_outbox_claims_due ON outbox_claims (ready_at) WHERE finished_at IS NULL AND dead_lettered_at IS NULL;
CREATE INDEX ix_outbox_claims_dead ON outbox_claims (dead_lettered_at) WHERE dead_lettered_at IS NOT NULL;

COMMENT ON TABLE outbox_claims IS 'Which dispatcher is publishing which outbox row, one row each, written with it. Completion updates; nothing is deleted.';
COMMENT ON COLUMN outbox_claims.message_id IS 'The outbox row.';
COMMENT ON COLUMN outbox_claims.priority IS 'The job''s priority when the wake-up was written; higher is published earlier.';
COMMENT ON COLUMN outbox_claims.ready_at IS 'Not published before this time: a schedule, a backoff, or a retry.';
COMMENT ON COLUMN outbox_claims.owner IS 'The dispatcher that holds the claim, for people. The token proves it.';
COMMENT ON COLUMN outbox_claims.token IS 'New for each claim; completing, failing and releasing ask for it.';
COMMENT ON COLUMN outbox_claims.claimed_at IS 'When the claim was taken.';
COMMENT ON COLUMN outbox_claims.expires_at IS 'When another dispatcher may take it over.';
COMMENT ON COLUMN outbox_claims.claims IS 'Claims so far. It rises even when a dispatcher dies, and bounds such loops.';
COMMENT ON COLUMN outbox_claims.failures IS 'Publishes that the broker refused or did not answer.';
COMMENT ON COLUMN outbox_claims.last_error_code IS 'Stable code of the last failure.';
COMMENT ON COLUMN outbox_claims.dead_lettered_at IS 'When the drain gave up; a person requeues it with waybill outbox requeue.';
COMMENT ON COLUMN outbox_claims.dead_reason_code IS 'Which limit was reached.';
COMMENT ON COLUMN outbox_claims.finished_at IS 'Set in the statement that sets outbox.published_at.';

CREATE TABLE outbox_requeues (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id    uuid NOT NULL REFERENCES outbox (message_id),
    requeued_by   text NOT NULL,
    reason        text NOT NULL,
    found         jsonb NOT NULL,
    recorded_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT ck_outbox_requeues_words CHECK (requeued_by <> '' AND reason <> '')
);
CREATE INDEX ix_outbox_requeues_message ON outbox_requeues (message_id);

COMMENT ON TABLE outbox_requeues IS 'Dead letters that a person sent on again: who and why. Append-only.';
COMMENT ON COLUMN outbox_requeues.id IS 'Order of insertion.';
COMMENT ON COLUMN outbox_requeues.message_id IS 'The outbox row.';
COMMENT ON COLUMN outbox_requeues.requeued_by IS 'The person.';
COMMENT ON COLUMN outbox_requeues.reason IS 'Why, in their words.';
COMMENT ON COLUMN outbox_requeues.found IS 'Claims, failures, last error and time of death as they were found.';
COMMENT ON COLUMN outbox_requeues.recorded_at IS 'When.';

CREATE TABLE wakeups (
    message_id      uuid PRIMARY KEY,
    job_id          uuid NOT NULL,
    destination_id  uuid NOT NULL,
    priority        smallint NOT NULL DEFAULT 0,
    ready_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    taken_by        text,
    taken_token     uuid,
    taken_until     timestamptz,
    deliveries      integer NOT NULL DEFAULT 0,
    CONSTRAINT ck_wakeups_taken CHECK (num_nonnulls(taken_by, taken_token, taken_until) IN (0, 3)),
    CONSTRAINT ck_wakeups_deliveries CHECK (deliveries >= 0)
);
CREATE INDEX ix_wakeups_ready ON wakeups (destination_id, priority DESC, ready_at);

COMMENT ON TABLE wakeups IS 'The queue of the PostgreSQL broker. A row is a hint; settling deletes it.';
COMMENT ON COLUMN wakeups.message_id IS 'The outbox row''s id; a second publish of the same id changes nothing.';
COMMENT ON COLUMN wakeups.job_id IS 'The job to look at.';
COMMENT ON COLUMN wakeups.destination_id IS 'The job''s destination when it was published; a host receives only what it can serve.';
COMMENT ON COLUMN wakeups.priority IS 'Higher is received earlier.';
COMMENT ON COLUMN wakeups.ready_at IS 'Not received before this time.';
COMMENT ON COLUMN wakeups.taken_by IS 'The worker that received it, for people.';
COMMENT ON COLUMN wakeups.taken_token IS 'New for each receipt; settling and handing back ask for it.';
COMMENT ON COLUMN wakeups.taken_until IS 'When it is received again if it was not settled.';
COMMENT ON COLUMN wakeups.deliveries IS 'How often it was received.';
