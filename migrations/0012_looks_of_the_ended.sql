-- A replacement's worker fences earlier attempts in any status of their job, so a look that has ended may be held too.

ALTER TABLE looks DROP CONSTRAINT ck_looks_ended;
COMMENT ON COLUMN looks.ended_at IS 'When looking ended; null: it goes on. A look that has ended may still be held by a replacement''s worker that fences the attempt.';
GRANT INSERT (owner, token, expires_at) ON looks TO waybill_worker;
