-- What policy and verdicts look up: how long a pause lasts, where each attempt went, and who used a final name before.

ALTER TABLE destinations
    ADD COLUMN paused_at timestamptz,
    ADD COLUMN probe_until timestamptz,
    ADD CONSTRAINT ck_destinations_paused CHECK (num_nonnulls(paused_at, paused_until) = CASE WHEN pause_failures > 0 THEN 2 ELSE 0 END),
    ADD CONSTRAINT ck_destinations_probe CHECK ((probe_job_id IS NULL) = (probe_until IS NULL) AND (probe_job_id IS NULL OR pause_failures > 0));
COMMENT ON COLUMN destinations.paused_at IS 'When the partner could not be reached last; null: it is not paused.';
COMMENT ON COLUMN destinations.paused_until IS 'When a job may try the partner again. The pause goes on until one reaches it.';
COMMENT ON COLUMN destinations.probe_until IS 'How long the probing job keeps its place even without a current attempt.';
GRANT UPDATE (paused_at, probe_until) ON destinations TO waybill_worker, waybill_api;

-- A claim's event names its destination, so that the starts of a rate's period are counted where they happened.
CREATE INDEX ix_export_attempt_events_started ON export_attempt_events ((detail ->> 'destination_id'), recorded_at) WHERE kind = 'Claimed';

CREATE TABLE final_name_uses (
    job_id       uuid PRIMARY KEY REFERENCES export_jobs (id),
    endpoint     text NOT NULL,
    directory    text NOT NULL,
    folded_name  text NOT NULL,
    used_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ix_final_name_uses_name ON final_name_uses (endpoint, directory, folded_name);
COMMENT ON TABLE final_name_uses IS 'Every job that was authorized under a final name; final_names has only the present holder. Append-only.';
COMMENT ON COLUMN final_name_uses.job_id IS 'The job. Cutoff 2 is crossed once a job.';
COMMENT ON COLUMN final_name_uses.endpoint IS 'As in final_names.';
COMMENT ON COLUMN final_name_uses.directory IS 'As in final_names.';
COMMENT ON COLUMN final_name_uses.folded_name IS 'As in final_names.';
COMMENT ON COLUMN final_name_uses.used_at IS 'When cutoff 2 gave the job the name.';

CREATE FUNCTION record_final_name_use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.final_name_uses (job_id, endpoint, directory, folded_name)
    VALUES (NEW.job_id, NEW.endpoint, NEW.directory, NEW.folded_name)
    ON CONFLICT (job_id) DO NOTHING;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION record_final_name_use() IS 'Keeps a final name''s earlier users, which the update of its holder overwrites.';
CREATE TRIGGER record_use AFTER INSERT OR UPDATE ON final_names FOR EACH ROW EXECUTE FUNCTION record_final_name_use();

GRANT SELECT ON final_name_uses TO waybill_api, waybill_worker, waybill_recovery, waybill_reconciler, waybill_corrector, waybill_reader;
GRANT INSERT (job_id, endpoint, directory, folded_name) ON final_name_uses TO waybill_worker;
