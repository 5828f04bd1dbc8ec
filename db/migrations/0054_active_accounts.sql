-- Up Migration

-- Which accounts have sent requests lately, by API process, so that what an account may have in progress is counted across
-- processes. Unlogged, since it is worth nothing after some seconds: a crash of PostgreSQL empties it, and each process goes
-- on as if it were alone until it writes its row again.
CREATE UNLOGGED TABLE api_process (
  id text COLLATE "C" PRIMARY KEY,
  active_accounts text[] NOT NULL,
  seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);
GRANT SELECT, INSERT, UPDATE, DELETE ON api_process TO card_issuing_app;
