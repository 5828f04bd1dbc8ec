-- Up Migration

-- What a key may do, from where, and until when (docs/partners/keys-and-modes.md). A key from before this, or from the
-- release before, may do everything but manage keys.
ALTER TABLE api_key
  ADD COLUMN scopes text[] NOT NULL 
    DEFAULT '{cards:read,cards:write,secure_details:read,balance:read,funding:write,events:read,webhooks:write,test:write}',
  -- CIDR blocks; NULL: every address.
  ADD COLUMN ip_allowlist text[],
  ADD COLUMN expires_at timestamptz,
  -- 'operator', or the id of the key that made it.
  ADD COLUMN created_by text NOT NULL DEFAULT 'operator',
  -- The first 12 characters. Of a key from before this, the hint has the first 8.
  ADD COLUMN prefix text,
  -- When api_key.expiring was written.
  ADD COLUMN expiry_announced_at timestamptz;

GRANT SELECT (scopes, ip_allowlist, expires_at, created_by, prefix, expiry_announced_at) ON api_key TO card_issuing_operator;
