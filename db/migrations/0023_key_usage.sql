-- Up Migration

-- What keys have used of the general rate limit, for all API processes together. Unlogged, since it is worth nothing
-- after a second: a crash of PostgreSQL empties it, and the processes go on with their own counts.
CREATE UNLOGGED TABLE api_key_usage (
  api_key_id text COLLATE "C" PRIMARY KEY,
  -- When the key may use its whole burst again.
  full_at timestamptz NOT NULL
) WITH (fillfactor = 50);
GRANT SELECT, INSERT, UPDATE ON api_key_usage TO card_issuing_app;
