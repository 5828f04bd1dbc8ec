-- Up Migration

-- The purchase that a refund gives money back for; NULL for everything else, and if it is not known (docs/partners/transactions.md).
ALTER TABLE card_transaction ADD refunded_transaction_id text COLLATE "C";
-- What was refunded of a purchase, and which purchase is part of the network's payment. The new column is empty, and few transactions
-- have the network's payment.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS card_transaction_refunds ON card_transaction (refunded_transaction_id)
  WHERE refunded_transaction_id IS NOT NULL;
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS card_transaction_of_payment ON card_transaction (card_id, network_payment_id)
  WHERE network_payment_id IS NOT NULL;
