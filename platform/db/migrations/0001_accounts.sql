-- Up Migration

-- 0001 to 0010 are the database of the first release, by capability. Later migrations change it. What each function is
-- for, and its current body, is in platform/db/functions/.

-- Each process works as a role of its own (docs/decisions/application-role.md): the API, the worker and the operator's
-- command line. card_issuing_app has what API and worker have in common. None of them can log in: whoever runs the
-- database creates logins, each a member of one of them. Roles belong to the whole cluster, so another database of it
-- may have them already.
DO $$
DECLARE
  role text;
BEGIN
  FOREACH role IN ARRAY '{card_issuing_app,card_issuing_api,card_issuing_worker,card_issuing_operator}'::text[] LOOP
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN', role);
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END;
    EXECUTE format('GRANT %I TO CURRENT_USER', role);
  END LOOP;
END $$;
GRANT card_issuing_app TO card_issuing_api, card_issuing_worker;

-- Nobody else who can connect has any rights.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO card_issuing_app, card_issuing_operator;
-- Every process checks that the migrations it needs are there.
GRANT SELECT ON schema_migration TO card_issuing_app, card_issuing_operator;

-- An account.
CREATE TABLE partner (
  id text PRIMARY KEY,
  name text NOT NULL,
  secure_details_enabled boolean NOT NULL DEFAULT false,
  -- The account's own fees and limits; NULL means the platform's. FeePlan and AccountLimits in domain/ have the shapes.
  fee_plan jsonb,
  limits jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Since when its keys are refused, and why; NULL if they are not. Its money, workflows and webhooks go on.
  suspended_at timestamptz,
  suspension_reason text,
  CONSTRAINT partner_suspension CHECK ((suspended_at IS NULL) = (suspension_reason IS NULL))
);

-- What an account has used of its limits in one mode. The account's issuances and credits take turns by locking this
-- row.
CREATE TABLE account_usage (
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  open_cards integer NOT NULL DEFAULT 0 CHECK (open_cards >= 0),
  loaded_on date NOT NULL DEFAULT '-infinity',
  loaded_cents bigint NOT NULL DEFAULT 0 CHECK (loaded_cents >= 0),
  PRIMARY KEY (partner_id, mode)
);

-- Of an API key, only a keyed hash is kept, and a hint that people recognize it by.
CREATE TABLE api_key (
  id text PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  name text,
  hash bytea NOT NULL UNIQUE,
  hint text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz,
  -- Accurate to a minute; NULL if it was never used.
  last_used_at timestamptz
);
CREATE INDEX api_key_of_partner ON api_key (partner_id);

-- What keys have used of the general rate limit, for all API processes together. Unlogged, since it is worthless after
-- a second: a crash of PostgreSQL empties it, and the processes continue with their own counts.
CREATE UNLOGGED TABLE api_key_usage (
  api_key_id text COLLATE "C" PRIMARY KEY,
  -- When the key may use its whole burst again.
  full_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Which accounts have sent requests lately, by API process, so that an account's requests in progress are counted
-- across processes. Unlogged, since it is worthless after some seconds: a crash of PostgreSQL empties it, and each
-- process works as if it were alone until it writes its row again.
CREATE UNLOGGED TABLE api_process (
  id text COLLATE "C" PRIMARY KEY,
  active_accounts text[] NOT NULL,
  seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- What a key of ENCRYPTION_KEYS is expanded to where other things are derived from it: the hashes of API keys, the
-- numbers of test cards. It is sealed with the ring's current key, so they remain valid after the key itself has left
-- the ring. It can't open what the key has sealed.
CREATE TABLE ring_key (
  id text COLLATE "C" PRIMARY KEY,
  root bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE product (
  code text PRIMARY KEY,
  bin text NOT NULL,
  network text NOT NULL,
  is_current boolean NOT NULL DEFAULT false,
  retired_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK (NOT (is_current AND retired_at IS NOT NULL))
);
CREATE UNIQUE INDEX product_one_current ON product (is_current) WHERE is_current;

-- The products that an account may issue besides the current one.
CREATE TABLE partner_product (
  partner_id text NOT NULL REFERENCES partner,
  product_code text NOT NULL REFERENCES product,
  PRIMARY KEY (partner_id, product_code)
);

-- Only operators change accounts, keys and products.
GRANT SELECT ON partner, account_usage, api_key, api_key_usage, ring_key, product, partner_product TO card_issuing_app;
-- To lock a row takes the right to write one of its columns. This one decides nothing.
GRANT UPDATE (created_at) ON partner TO card_issuing_app;
GRANT UPDATE (open_cards, loaded_on, loaded_cents) ON account_usage TO card_issuing_app;
GRANT UPDATE (last_used_at) ON api_key TO card_issuing_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON api_process TO card_issuing_app;
GRANT INSERT, UPDATE ON api_key_usage TO card_issuing_api;

GRANT SELECT, INSERT ON partner, account_usage, ring_key, product, partner_product TO card_issuing_operator;
GRANT UPDATE (name, secure_details_enabled, fee_plan, limits, suspended_at, suspension_reason) ON partner
  TO card_issuing_operator;
-- Everything but the hash.
GRANT SELECT (id, partner_id, mode, name, hint, created_at, revoked_at, last_used_at) ON api_key TO card_issuing_operator;
GRANT INSERT, UPDATE (revoked_at) ON api_key TO card_issuing_operator;
GRANT UPDATE (root) ON ring_key TO card_issuing_operator;
GRANT UPDATE (bin, network, is_current, retired_at) ON product TO card_issuing_operator;
