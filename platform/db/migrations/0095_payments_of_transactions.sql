-- Up Migration

-- The card network's id of what a transaction is part of, by which the reconciliation reads all of it
-- (docs/decisions/reconciliation.md). NULL for what was booked before.
ALTER TABLE card_transaction ADD network_payment_id text COLLATE "C";
