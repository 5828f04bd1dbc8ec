-- Up Migration

-- For a list of an account's keys, and to count those that are active.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX api_key_newest ON api_key (partner_id, mode, id COLLATE "C");
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX api_key_unrevoked ON api_key (partner_id, mode, expires_at) WHERE revoked_at IS NULL;
-- Those whose api_key.expiring has not been sent.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX api_key_to_announce ON api_key (partner_id, mode, expires_at)
  WHERE expires_at IS NOT NULL AND revoked_at IS NULL AND expiry_announced_at IS NULL;

-- Partners manage their keys through the API.
GRANT INSERT, UPDATE (revoked_at, expires_at) ON api_key TO card_issuing_api;
GRANT UPDATE (expiry_announced_at) ON api_key TO card_issuing_worker;
