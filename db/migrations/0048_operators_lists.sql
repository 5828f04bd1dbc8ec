-- Up Migration

-- Who sent a request: the API key's id and the address. NULL for what operators request, and for claims from before.
ALTER TABLE idempotency_claim ADD IF NOT EXISTS api_key_id text COLLATE "C", ADD IF NOT EXISTS client_address text;

-- What a key did, an account's top-ups and its transactions, newest first. If the tables are large, add the columns above and
-- build the indexes CONCURRENTLY before the deployment.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS idempotency_claim_of_key ON idempotency_claim (api_key_id, id);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS topup_newest ON topup (partner_id, mode, id);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS card_transaction_newest ON card_transaction (partner_id, mode, id);
