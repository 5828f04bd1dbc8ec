-- Up Migration

-- When a key was last used, right within a minute. NULL: never, or not since this is recorded.
ALTER TABLE api_key ADD last_used_at timestamptz;
GRANT UPDATE (last_used_at) ON api_key TO card_issuing_app;
GRANT SELECT (last_used_at) ON api_key TO card_issuing_operator;
