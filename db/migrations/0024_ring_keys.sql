-- Up Migration

-- What a key of ENCRYPTION_KEYS is expanded to where others are derived from it: the hashes of API keys, the numbers of test
-- cards. It is sealed under the ring's current key, so those stay good after the key itself has left the ring; it can't open
-- what the key has sealed.
CREATE TABLE ring_key (
  id text COLLATE "C" PRIMARY KEY,
  root bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
GRANT SELECT ON ring_key TO card_issuing_app;
GRANT SELECT, INSERT, UPDATE (root) ON ring_key TO card_issuing_operator;

-- To seal again what is sealed under another key.
GRANT UPDATE (request, response_body) ON idempotency_claim TO card_issuing_operator;
GRANT UPDATE (answer_start) ON delivery_attempt TO card_issuing_operator;
