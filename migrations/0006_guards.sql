-- What no login may do, whatever statement it sends. Column grants cannot tell a worker's Completed from a correction;
-- these triggers can. Names are qualified, so that no temporary table can stand in for one of them.

CREATE TABLE allowed_transitions (
    role         text NOT NULL,
    from_status  text,
    to_status    text NOT NULL,
    CONSTRAINT uq_allowed_transitions UNIQUE NULLS NOT DISTINCT (role, from_status, to_status)
);
COMMENT ON TABLE allowed_transitions IS 'Which login may write a job of one status so that it has another, also the same. A trigger refuses every other write.';
COMMENT ON COLUMN allowed_transitions.role IS 'The login.';
COMMENT ON COLUMN allowed_transitions.from_status IS 'The status before; null: the job is created.';
COMMENT ON COLUMN allowed_transitions.to_status IS 'The status after.';

INSERT INTO allowed_transitions (role, from_status, to_status) VALUES
    ('waybill_api', NULL, 'Queued'),
    ('waybill_api', 'Queued', 'Queued'),
    ('waybill_api', 'Queued', 'Canceled'),
    ('waybill_api', 'Running', 'Running'),
    ('waybill_worker', 'Queued', 'Rejected'),
    ('waybill_worker', 'Queued', 'Running'),
    ('waybill_worker', 'Running', 'Running'),
    ('waybill_worker', 'Running', 'Queued'),
    ('waybill_worker', 'Running', 'Stopped'),
    ('waybill_worker', 'Running', 'Failed'),
    ('waybill_worker', 'Running', 'Delivering'),
    ('waybill_worker', 'Delivering', 'Delivering'),
    ('waybill_worker', 'Delivering', 'Completed'),
    ('waybill_worker', 'Delivering', 'Failed'),
    ('waybill_worker', 'Delivering', 'OutcomeUnknown'),
    ('waybill_recovery', 'Queued', 'Queued'),
    ('waybill_recovery', 'Running', 'Queued'),
    ('waybill_recovery', 'Running', 'Stopped'),
    ('waybill_recovery', 'Running', 'Failed'),
    ('waybill_recovery', 'Delivering', 'Completed'),
    ('waybill_recovery', 'Delivering', 'OutcomeUnknown'),
    ('waybill_reconciler', 'OutcomeUnknown', 'Completed'),
    ('waybill_reconciler', 'OutcomeUnknown', 'Failed'),
    ('waybill_corrector', 'OutcomeUnknown', 'Completed'),
    ('waybill_corrector', 'OutcomeUnknown', 'Failed'),
    ('waybill_corrector', 'Completed', 'Failed'),
    ('waybill_corrector', 'Failed', 'Completed');

CREATE TABLE allowed_event_kinds (
    role  text NOT NULL,
    kind  text NOT NULL,
    CONSTRAINT pk_allowed_event_kinds PRIMARY KEY (role, kind)
);
COMMENT ON TABLE allowed_event_kinds IS 'Which login may record which kind of event. A trigger refuses every other one.';
COMMENT ON COLUMN allowed_event_kinds.role IS 'The login.';
COMMENT ON COLUMN allowed_event_kinds.kind IS 'The kind of export_attempt_events.';

INSERT INTO allowed_event_kinds (role, kind) VALUES
    ('waybill_worker', 'Claimed'),
    ('waybill_worker', 'DeliveryAuthorized'),
    ('waybill_worker', 'PublishIntended'),
    ('waybill_worker', 'Stopped'),
    ('waybill_worker', 'Failed'),
    ('waybill_worker', 'Finished'),
    ('waybill_worker', 'ReleasedByWorker'),
    ('waybill_worker', 'AttemptsExhausted'),
    ('waybill_worker', 'DeliveryEvidence'),
    ('waybill_recovery', 'RequeuedByRecovery'),
    ('waybill_recovery', 'StoppedByRecovery'),
    ('waybill_recovery', 'AttemptsExhausted'),
    ('waybill_recovery', 'ResolvedByRecovery'),
    ('waybill_recovery', 'DeliveryEvidence'),
    ('waybill_reconciler', 'Reconciled'),
    ('waybill_reconciler', 'DeliveryEvidence'),
    ('waybill_corrector', 'Reconciled'),
    ('waybill_corrector', 'Corrected'),
    ('waybill_corrector', 'DeliveryEvidence');

-- SQLSTATE class WB is ours: WB001 edge, WB002 identity, WB003 facts of an attempt, WB004 terms, WB005 event kind,
-- WB006 final name held.
CREATE FUNCTION guard_export_jobs_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM public.allowed_transitions AS allowed
                   WHERE allowed.role = current_user AND allowed.from_status IS NULL AND allowed.to_status = NEW.status) THEN
        RAISE EXCEPTION '% may not create a job as %', current_user, NEW.status USING ERRCODE = 'WB001';
    END IF;
    IF NEW.version <> 1 OR NEW.attempt_count <> 0 OR NEW.sweep_count <> 0 THEN
        RAISE EXCEPTION 'a new job has version 1, no attempt and no sweep' USING ERRCODE = 'WB003';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION guard_export_jobs_insert() IS 'Refuses a new job that the login may not create.';

CREATE FUNCTION guard_export_jobs_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM public.allowed_transitions AS allowed
                   WHERE allowed.role = current_user AND allowed.from_status = OLD.status AND allowed.to_status = NEW.status) THEN
        RAISE EXCEPTION '% may not move a job from % to %', current_user, OLD.status, NEW.status USING ERRCODE = 'WB001';
    END IF;

    IF (NEW.id, NEW.tenant_id, NEW.delivery_key, NEW.replaces_job_id, NEW.created_by, NEW.created_at, NEW.replacement_reason,
        NEW.overwrite_agreement_ref)
       IS DISTINCT FROM
       (OLD.id, OLD.tenant_id, OLD.delivery_key, OLD.replaces_job_id, OLD.created_by, OLD.created_at, OLD.replacement_reason,
        OLD.overwrite_agreement_ref) THEN
        RAISE EXCEPTION 'the identity of job % never changes', OLD.id USING ERRCODE = 'WB002';
    END IF;

    -- Terms change only while queued, and then the version rises by one.
    IF (NEW.destination_id, NEW.scope, NEW.not_before) IS DISTINCT FROM (OLD.destination_id, OLD.scope, OLD.not_before)
       AND NEW.version <> OLD.version + 1 THEN
        RAISE EXCEPTION 'the terms of job % change only together with their version', OLD.id USING ERRCODE = 'WB004';
    END IF;
    IF NEW.version <> OLD.version AND (NEW.version <> OLD.version + 1 OR OLD.status <> 'Queued' OR NEW.status <> 'Queued') THEN
        RAISE EXCEPTION 'the version of job % rises by one, and only while it is queued', OLD.id USING ERRCODE = 'WB004';
    END IF;
    IF OLD.replaces_job_id IS NOT NULL AND NEW.destination_id <> OLD.destination_id THEN
        RAISE EXCEPTION 'replacement % keeps the destination of its original', OLD.id USING ERRCODE = 'WB004';
    END IF;

    -- An attempt begins with a claim, and its id leaves the row only with a requeue.
    IF NEW.attempt_id IS DISTINCT FROM OLD.attempt_id
       AND NOT (OLD.status = 'Queued' AND NEW.status = 'Running')
       AND NOT (OLD.status = 'Running' AND NEW.status = 'Queued') THEN
        RAISE EXCEPTION 'the attempt of job % changes only with a claim or a requeue', OLD.id USING ERRCODE = 'WB003';
    END IF;
    IF NEW.attempt_count <> OLD.attempt_count + (OLD.status = 'Queued' AND NEW.status = 'Running')::integer THEN
        RAISE EXCEPTION 'a claim, and nothing else, raises the attempt count of job %', OLD.id USING ERRCODE = 'WB003';
    END IF;
    IF (NEW.known_system, NEW.known_timeline) IS DISTINCT FROM (OLD.known_system, OLD.known_timeline)
       AND NOT (OLD.status = 'Queued' AND NEW.status = 'Running') THEN
        RAISE EXCEPTION 'only a claim records the database of job % anew', OLD.id USING ERRCODE = 'WB003';
    END IF;

    -- The first stop request stands.
    IF NEW.stop_request_id IS DISTINCT FROM OLD.stop_request_id
       AND NOT (OLD.stop_request_id IS NULL AND OLD.status = 'Running' AND NEW.status = 'Running' AND current_user = 'waybill_api') THEN
        RAISE EXCEPTION 'the stop request of job % is set once, by a cancellation that found it running', OLD.id USING ERRCODE = 'WB003';
    END IF;
    IF NEW.cancellation_request_id IS DISTINCT FROM OLD.cancellation_request_id
       AND NOT (OLD.status = 'Queued' AND NEW.status = 'Canceled') THEN
        RAISE EXCEPTION 'the cancellation request of job % is set with Queued to Canceled', OLD.id USING ERRCODE = 'WB003';
    END IF;

    IF (NEW.expected_file_name, NEW.expected_file_bytes, NEW.expected_file_sha256, NEW.delivery_authorized_at)
       IS DISTINCT FROM
       (OLD.expected_file_name, OLD.expected_file_bytes, OLD.expected_file_sha256, OLD.delivery_authorized_at)
       AND NOT (OLD.status = 'Running' AND NEW.status = 'Delivering') THEN
        RAISE EXCEPTION 'the expected file of job % is recorded with Running to Delivering only', OLD.id USING ERRCODE = 'WB003';
    END IF;
    IF NEW.publish_intended_at IS DISTINCT FROM OLD.publish_intended_at
       AND NOT (OLD.publish_intended_at IS NULL AND OLD.status = 'Delivering' AND NEW.status = 'Delivering'
                AND current_user = 'waybill_worker') THEN
        RAISE EXCEPTION 'the publish fence of job % is set once, by the worker that is delivering it', OLD.id USING ERRCODE = 'WB003';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION guard_export_jobs_update() IS 'Refuses edges that the login may not take, and changes of what never changes.';

CREATE TRIGGER guard_insert BEFORE INSERT ON export_jobs FOR EACH ROW EXECUTE FUNCTION guard_export_jobs_insert();
CREATE TRIGGER guard_update BEFORE UPDATE ON export_jobs FOR EACH ROW EXECUTE FUNCTION guard_export_jobs_update();

CREATE FUNCTION guard_export_attempt_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM public.allowed_event_kinds AS allowed
                   WHERE allowed.role = current_user AND allowed.kind = NEW.kind) THEN
        RAISE EXCEPTION '% may not record %', current_user, NEW.kind USING ERRCODE = 'WB005';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION guard_export_attempt_events() IS 'Refuses event kinds that the login may not record.';
CREATE TRIGGER guard_insert BEFORE INSERT ON export_attempt_events FOR EACH ROW EXECUTE FUNCTION guard_export_attempt_events();

-- The row of a name is locked by the update that asks for it, so the holder cannot become unsettled meanwhile: its own
-- cutoff 2 would have to update the same row.
CREATE FUNCTION guard_final_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.tenant_id, NEW.delivery_key) IS DISTINCT FROM (OLD.tenant_id, OLD.delivery_key)
       AND (NOT NEW.reused
            OR NOT EXISTS (SELECT FROM public.export_jobs AS holder
                           JOIN public.destinations AS destination ON destination.id = holder.destination_id
                           WHERE holder.id = OLD.job_id AND destination.contract @> '{"names_reused": true}')
            OR EXISTS (SELECT FROM public.export_jobs AS holder
                       WHERE holder.tenant_id = OLD.tenant_id AND holder.delivery_key = OLD.delivery_key
                         AND holder.status IN ('Queued', 'Running', 'Delivering', 'OutcomeUnknown'))) THEN
        RAISE EXCEPTION 'the final name is held by another delivery' USING ERRCODE = 'WB006';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION guard_final_names() IS 'Hands a final name to another delivery key only where both contracts say that names are reused, and every job of its holder is settled.';
CREATE TRIGGER guard_update BEFORE UPDATE ON final_names FOR EACH ROW EXECUTE FUNCTION guard_final_names();
