-- Up Migration

-- Payments to judge, by account. Where there are many payments, build this before the upgrade with CREATE INDEX CONCURRENTLY
-- (docs/operating.md#upgrading).
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS deposit_payment_found_of_account ON deposit_payment (partner_id, mode, deposit_id)
  WHERE status = 'found';
-- The index above replaces it: the release before finds payments by its first column.
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX deposit_payment_found;
