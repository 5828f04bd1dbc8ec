-- Up Migration

-- What a sandbox clock makes due (docs/decisions/sandbox-clock.md): retries of an account, in the order of their due times. There
-- are few: only those of test mode.
-- squawk-ignore require-concurrent-index-creation -- It has only retries of test mode, and is built beforehand if there are many.
CREATE INDEX IF NOT EXISTS delivery_due_by_clock ON delivery (partner_id, mode, next_attempt_at)
  WHERE status = 'retrying' AND mode = 'test';
-- squawk-ignore require-concurrent-index-creation -- The table came with the release that this belongs to.
CREATE INDEX IF NOT EXISTS test_clock_advance_latest ON test_clock_advance (advanced_at);
