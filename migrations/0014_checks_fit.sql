-- A check counts for the destination as it was when it was made: for its endpoint, its names and the folder of its answers.

ALTER TABLE destination_checks
    ADD COLUMN checked text,
    -- What is decided by a check is decided by one that looked, or by one that says why it could not.
    ADD CONSTRAINT ck_destination_checks_looked CHECK (checked IS NULL OR proof IS NULL OR seen IS NOT NULL);

COMMENT ON COLUMN destination_checks.checked IS 'Digest of what was checked: the same that stands among the destination''s digests. Null: from before there was one; such a check is read by nobody.';
COMMENT ON COLUMN destination_checks.seen IS 'What the server showed of a file that we wrote, and whether it could be listed and read back. Null: nothing was proven, or an attempt of an earlier version proved how it publishes and looked at nothing else.';
COMMENT ON COLUMN destinations.digests IS 'SHA-256 of components, manifest, settings and contract of that revision, and of what a check of its server depends on.';

GRANT UPDATE (checked) ON destination_checks TO waybill_worker;
