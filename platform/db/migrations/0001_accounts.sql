-- Up Migration

-- Each process works as a role of its own (docs/decisions/application-role.md): the API, the worker and the
-- operator's command line. card_issuing_app has what API and worker have in common. None of them can log in:
-- whoever runs the database creates logins, each a member of one of them. Roles belong to the whole cluster,
-- so another database of it may have them already.
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

-- Which texts of a function were applied (platform/db/functions), and when last. Those that were replaced stay, so that
-- the processes of the version before are ready until they are replaced, too.
CREATE TABLE schema_function (
  name text COLLATE "C" NOT NULL,
  sha256 bytea NOT NULL,
  applied_at timestamptz NOT NULL,
  PRIMARY KEY (name, sha256)
);
-- Every process checks that the migrations and functions it needs are there.
GRANT SELECT ON schema_migration, schema_function TO card_issuing_app, card_issuing_operator;

-- An account.
CREATE TABLE partner (
  id text PRIMARY KEY,
  name text NOT NULL,
  secure_details_enabled boolean NOT NULL DEFAULT false,
  -- The account's own fees and limits; NULL means the platform's. FeePlan and AccountLimits in domain/ have
  -- the shapes.
  fee_plan jsonb,
  limits jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Since when its keys are refused, and why; NULL if they are not. Its money, workflows and webhooks go on.
  suspended_at timestamptz,
  suspension_reason text,
  spending_controls jsonb,
  CONSTRAINT partner_suspension CHECK ((suspended_at IS NULL) = (suspension_reason IS NULL))
);

-- What an account has used of its limits in one mode. The account's issuances and credits take turns by
-- locking this row.
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
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  name text,
  hash bytea NOT NULL UNIQUE,
  hint text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz,
  -- Accurate to a minute; NULL if it was never used.
  last_used_at timestamptz,
  -- What a key may do, from where, and until when (docs/partners/keys-and-modes.md).
  scopes text[] NOT NULL
    DEFAULT '{cards:read,cards:write,secure_details:read,balance:read,funding:write,events:read,webhooks:write,test:write,workbench:write,requests:read}',
  -- CIDR blocks; NULL: every address.
  ip_allowlist text[],
  expires_at timestamptz,
  -- 'operator', or the id of the key that made it.
  created_by text NOT NULL DEFAULT 'operator',
  -- The first 12 characters.
  prefix text NOT NULL,
  -- When api_key.expiring was written.
  expiry_announced_at timestamptz
);
CREATE INDEX api_key_of_partner ON api_key (partner_id);
-- For a list of an account's keys, and to count those that are active.
CREATE INDEX api_key_newest ON api_key (partner_id, mode, id);
CREATE INDEX api_key_unrevoked ON api_key (partner_id, mode, expires_at) WHERE revoked_at IS NULL;
-- Those whose api_key.expiring has not been sent.
CREATE INDEX api_key_to_announce ON api_key (partner_id, mode, expires_at)
  WHERE expires_at IS NOT NULL AND revoked_at IS NULL AND expiry_announced_at IS NULL;

-- A workbench session: an API key that lives in a browser's cookie (docs/partners/workbench.md). Tokens are
-- stored as keyed hashes. Sessions live in real time.
CREATE TABLE workbench_session (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  -- The key that made it, with which it ends.
  api_key_id text NOT NULL REFERENCES api_key,
  scopes text[] NOT NULL,
  -- Of the token in its link, which opens it once.
  link_hash bytea NOT NULL UNIQUE,
  link_expires_at timestamptz NOT NULL,
  -- Of the token in the cookie; NULL until the link was opened.
  cookie_hash bytea UNIQUE,
  expires_at timestamptz NOT NULL,
  ended_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX workbench_session_newest ON workbench_session (partner_id, mode, id);
CREATE INDEX workbench_session_open ON workbench_session (partner_id, mode, expires_at) WHERE ended_at IS NULL;
CREATE INDEX workbench_session_age ON workbench_session (expires_at);

-- What keys have used of the general rate limit, for all API processes together. Unlogged, since it is
-- worthless after a second: a crash of PostgreSQL empties it, and the processes continue with their own
-- counts.
CREATE UNLOGGED TABLE usage_bucket (
  name text COLLATE "C" PRIMARY KEY,
  -- When the key may use its whole burst again.
  full_at timestamptz NOT NULL,
  -- When that was last counted. If it is in the future, the clock has been set back since.
  counted_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Which accounts have sent requests lately, by API process, so that an account's requests in progress are
-- counted across processes. Unlogged, since it is worthless after some seconds: a crash of PostgreSQL empties
-- it, and each process works as if it were alone until it writes its row again.
CREATE UNLOGGED TABLE api_process (
  id text COLLATE "C" PRIMARY KEY,
  active_accounts text[] NOT NULL,
  seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- What a key of ENCRYPTION_KEYS is expanded to where other things are derived from it: the hashes of API
-- keys, the numbers of test cards. It is sealed with the ring's current key, so they remain valid after the
-- key itself has left the ring. It can't open what the key has sealed.
CREATE TABLE ring_key (
  id text COLLATE "C" PRIMARY KEY,
  root bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- The sandbox clock: what time it is for an account's test mode (docs/decisions/sandbox-clock.md). Each row
-- is an advance. An account without a row lives in real time.
CREATE TABLE test_clock_advance (
  partner_id text COLLATE "C" NOT NULL REFERENCES partner,
  -- In real time, to the millisecond. No id of the account's that is older was given out afterwards.
  advanced_at timestamptz NOT NULL,
  seconds_before bigint NOT NULL CHECK (seconds_before >= 0),
  -- How far the clock is ahead of real time since then: all advances together.
  offset_seconds bigint NOT NULL CHECK (offset_seconds > seconds_before),
  -- What the clock showed right after it.
  shows timestamptz NOT NULL,
  PRIMARY KEY (partner_id, advanced_at)
);
CREATE UNIQUE INDEX test_clock_advance_shows ON test_clock_advance (partner_id, shows);

-- Pretend money, which a partner asks for in test mode.
CREATE TABLE faucet_credit (
  id text PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode = 'test'),
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX faucet_credit_recent ON faucet_credit (partner_id, created_at);

-- A manual credit (positive) or debit (negative) of the prepaid balance.
CREATE TABLE balance_adjustment (
  id text PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  amount_cents bigint NOT NULL CHECK (amount_cents <> 0),
  reason text NOT NULL,
  key text,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- The database login that wrote it.
  login text NOT NULL DEFAULT session_user,
  UNIQUE (partner_id, mode, key)
);

-- An adjustment that needs a second operator (docs/decisions/two-persons.md). The adjustment it becomes has
-- the same id.
CREATE TABLE adjustment_request (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  amount_cents bigint NOT NULL CHECK (amount_cents <> 0),
  reason text NOT NULL,
  key text,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'rejected')),
  requested_by text NOT NULL,
  requested_login text NOT NULL DEFAULT session_user,
  created_at timestamptz NOT NULL DEFAULT now(),
  decided_by text,
  decided_login text,
  decided_at timestamptz,
  decision_reason text,
  UNIQUE (partner_id, mode, key),
  CHECK ((status = 'pending') = (decided_at IS NULL)),
  CHECK (status <> 'approved' OR decided_by <> requested_by),
  -- Whoever approves a request has another login than who made it, not only another name
  -- (docs/decisions/two-persons.md).
  CONSTRAINT adjustment_request_two_logins
    CHECK (status <> 'approved' OR decided_login <> requested_login)
);
CREATE INDEX adjustment_request_pending ON adjustment_request (created_at) WHERE status = 'pending';

-- Above this amount, the database books no adjustment without an approved request. Only the owner sets it.
CREATE TABLE adjustment_limit (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  limit_cents bigint NOT NULL CHECK (limit_cents >= 0)
);

-- To lock a row takes the right to write one of its columns. This one decides nothing.
GRANT SELECT, UPDATE (created_at) ON partner TO card_issuing_app;
GRANT SELECT, INSERT, UPDATE (name, secure_details_enabled, fee_plan, limits, suspended_at, suspension_reason,
  spending_controls) ON partner TO card_issuing_operator;
GRANT SELECT, UPDATE (open_cards, loaded_on, loaded_cents) ON account_usage TO card_issuing_app;
GRANT SELECT, INSERT ON account_usage TO card_issuing_operator;
-- Operators see everything but the hash.
GRANT SELECT, UPDATE (last_used_at) ON api_key TO card_issuing_app;
GRANT INSERT, UPDATE (revoked_at, expires_at) ON api_key TO card_issuing_api;
GRANT UPDATE (expiry_announced_at) ON api_key TO card_issuing_worker;
GRANT SELECT (id, partner_id, mode, name, hint, created_at, revoked_at, last_used_at, scopes, ip_allowlist,
  expires_at, created_by, prefix, expiry_announced_at), INSERT, UPDATE (revoked_at) ON api_key TO
  card_issuing_operator;
GRANT SELECT ON workbench_session TO card_issuing_api;
GRANT INSERT, UPDATE (cookie_hash, ended_at) ON workbench_session TO card_issuing_api;
-- A worker deletes those that were over long ago.
GRANT SELECT (id, expires_at), DELETE ON workbench_session TO card_issuing_worker;
GRANT SELECT (id, partner_id, mode, api_key_id, scopes, link_expires_at, expires_at, ended_at, created_at), INSERT,
  UPDATE (ended_at) ON workbench_session TO card_issuing_operator;
GRANT SELECT ON usage_bucket TO card_issuing_app;
GRANT INSERT, UPDATE ON usage_bucket TO card_issuing_api;
GRANT UPDATE (full_at), DELETE ON usage_bucket TO card_issuing_worker;
GRANT SELECT, INSERT, DELETE, UPDATE ON api_process TO card_issuing_app;
GRANT SELECT ON ring_key TO card_issuing_app;
GRANT SELECT, INSERT, UPDATE (root) ON ring_key TO card_issuing_operator;
GRANT SELECT ON test_clock_advance TO card_issuing_app, card_issuing_operator;
GRANT INSERT ON test_clock_advance TO card_issuing_api;
GRANT SELECT ON faucet_credit TO card_issuing_app, card_issuing_operator;
GRANT INSERT ON faucet_credit TO card_issuing_api;
-- The check of the ledger compares each posting with the row it is for.
GRANT SELECT ON balance_adjustment TO card_issuing_app;
GRANT SELECT, INSERT ON balance_adjustment TO card_issuing_operator;
GRANT SELECT ON adjustment_request TO card_issuing_app;
GRANT SELECT, INSERT, UPDATE (status, decided_by, decision_reason) ON adjustment_request TO
  card_issuing_operator;
GRANT SELECT ON adjustment_limit TO card_issuing_operator;
