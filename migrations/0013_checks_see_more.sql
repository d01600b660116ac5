-- What a check of a partner's server sees beside its proof: what people are told, and what enabling is decided by.

ALTER TABLE destination_checks
    ADD COLUMN seen jsonb,
    ADD CONSTRAINT ck_destination_checks_seen CHECK (seen IS NULL OR proof IS NOT NULL);

COMMENT ON COLUMN destination_checks.seen IS 'What the server showed of a file that we wrote, and whether it could be listed and read back. Null: an attempt proved how it publishes, and looked at nothing else.';

GRANT UPDATE (seen) ON destination_checks TO waybill_worker;
