-- Up Migration

-- An account's keys have one rate together, too, so what was of keys alone is of anything that has a bucket
-- (docs/decisions/rate-limit-across-processes.md).
-- squawk-ignore renaming-table -- the release before uses the view of the old name, below
ALTER TABLE api_key_usage RENAME TO usage_bucket;
-- squawk-ignore renaming-column -- likewise
ALTER TABLE usage_bucket RENAME COLUMN api_key_id TO name;
ALTER INDEX api_key_usage_pkey RENAME TO usage_bucket_pkey;

CREATE VIEW api_key_usage AS SELECT name AS api_key_id, full_at FROM usage_bucket;
GRANT SELECT, INSERT, UPDATE ON api_key_usage TO card_issuing_api;
