-- Up Migration

-- Double entry, append-only, with apply_operations() as the only writer:
-- docs/decisions/ledger-one-function.md says why. The tables have few CHECKs and no foreign keys among them.
-- Every call would pay for both, and the key-share locks of foreign keys would make each of the platform's
-- accounts a hot row.
CREATE SCHEMA ledger;
GRANT USAGE ON SCHEMA ledger TO card_issuing_app, card_issuing_operator;

CREATE TYPE ledger.account_kind AS ENUM
  ('prepaid', 'card', 'network', 'fee_revenue', 'faucet', 'crypto_clearing', 'adjustment');
CREATE TYPE ledger.phase AS ENUM ('single', 'pending', 'post', 'void');
CREATE TYPE ledger.side AS ENUM ('debit', 'credit');

-- Tracked accounts have a balance, and a lock on their row. The balance of any other is the sum of its
-- entries, so its row is never hot.
CREATE TABLE ledger.account (
  -- <kind>/<mode>/<partnerId>, or card/<cardId>
  id text COLLATE "C" PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  kind ledger.account_kind NOT NULL,
  card_id text COLLATE "C",
  tracked boolean NOT NULL GENERATED ALWAYS AS (kind IN ('prepaid', 'card')) STORED,
  -- In cents: credits minus debits, and how much of that unresolved pending transfers reserve.
  posted bigint NOT NULL DEFAULT 0 CHECK (posted BETWEEN -9007199254740991 AND 9007199254740991),
  held bigint NOT NULL DEFAULT 0 CHECK (held BETWEEN 0 AND 9007199254740991),
  -- How many entries it has.
  version bigint NOT NULL DEFAULT 0,
  -- posted - held may not go below this, except with codes that may overdraw. No code overdraws a card.
  floor bigint NOT NULL DEFAULT 0,
  -- The balance alert of a prepaid account (docs/decisions/balance-alerts.md): its threshold in cents, and
  -- whether the available balance was below it after the last change. Only ledger.set_alert() and the trigger
  -- write them.
  alert_cents bigint CONSTRAINT alert_threshold CHECK (alert_cents > 0),
  alert_is_low boolean NOT NULL DEFAULT false,
  CHECK ((kind = 'card') = (card_id IS NOT NULL)),
  CONSTRAINT card_not_overdrawn CHECK (kind <> 'card' OR posted - held >= floor)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX account_card ON ledger.account (card_id) WHERE card_id IS NOT NULL;

-- The chart of accounts: which flows are allowed.
CREATE TABLE ledger.code (
  code text COLLATE "C" PRIMARY KEY,
  debit_kind ledger.account_kind NOT NULL,
  credit_kind ledger.account_kind NOT NULL,
  -- It may take the debited account below its floor.
  may_overdraw boolean NOT NULL,
  -- It may be pending first, then posted or voided.
  may_hold boolean NOT NULL,
  mode text CHECK (mode IN ('test', 'live')),
  posted_by text[] NOT NULL DEFAULT '{}',
  CHECK (debit_kind IN ('prepaid', 'card') OR credit_kind IN ('prepaid', 'card')),
  CHECK (NOT may_hold OR (debit_kind IN ('prepaid', 'card') AND NOT may_overdraw))
);
COMMENT ON COLUMN ledger.code.mode IS 'The one mode it may be used in; NULL: both.';
COMMENT ON COLUMN ledger.code.posted_by IS 'The roles whose logins may post it; none, unless it is said.';
-- The API runs the first tasks of the workflows it starts, so it posts what they post. It also receives the
-- network's messages; for the simulated network, an operator sends them. Pretend money exists in test mode
-- only, and money from a chain in live mode only.
INSERT INTO ledger.code (code, debit_kind, credit_kind, may_overdraw, may_hold, mode, posted_by)
SELECT code, debit_kind::ledger.account_kind, credit_kind::ledger.account_kind, may_overdraw, may_hold, mode,
  CASE by
    WHEN 'services' THEN '{card_issuing_api,card_issuing_worker}'::text[]
    WHEN 'all' THEN '{card_issuing_api,card_issuing_worker,card_issuing_operator}'
    WHEN 'deposits' THEN '{card_issuing_worker,card_issuing_operator}'
    ELSE ARRAY['card_issuing_' || by]
  END
FROM (VALUES
  ('issue_load', 'prepaid', 'card', false, true, NULL, 'services'),
  ('topup', 'prepaid', 'card', false, true, NULL, 'services'),
  ('withdrawal', 'card', 'prepaid', false, true, NULL, 'services'),
  ('fee_activation', 'prepaid', 'fee_revenue', false, true, NULL, 'services'),
  ('fee_funding', 'prepaid', 'fee_revenue', false, true, NULL, 'services'),
  -- What becomes free on a blocked card is released when a message says so.
  ('block_release', 'card', 'prepaid', false, false, NULL, 'all'),
  -- Holds on cards. A clearing posts the authorization's; what it takes beyond that is a purchase or a
  -- late_debit.
  ('authorization', 'card', 'network', false, true, NULL, 'all'),
  ('purchase', 'card', 'network', false, false, NULL, 'all'),
  ('refund', 'network', 'card', false, false, NULL, 'all'),
  ('fee_transaction', 'prepaid', 'fee_revenue', true, false, NULL, 'all'),
  ('fee_decline', 'prepaid', 'fee_revenue', true, false, NULL, 'all'),
  -- A purchase and a refund that reach a blocked card.
  ('late_debit', 'prepaid', 'network', true, false, NULL, 'all'),
  ('late_refund', 'network', 'prepaid', false, false, NULL, 'all'),
  ('fund_faucet', 'faucet', 'prepaid', false, false, 'test', 'api'),
  ('fund_test_usdt', 'faucet', 'prepaid', false, false, 'test', 'all'),
  ('fund_usdt', 'crypto_clearing', 'prepaid', false, false, 'live', 'deposits'),
  ('adjustment_credit', 'adjustment', 'prepaid', false, false, NULL, 'operator'),
  ('adjustment_debit', 'prepaid', 'adjustment', false, false, NULL, 'operator')) c (code, debit_kind, credit_kind, may_overdraw, may_hold, mode, by);

CREATE TABLE ledger.transfer (
  id uuid PRIMARY KEY,
  -- SHA-256 of all transfers of the operation. A retry has the same.
  fingerprint bytea NOT NULL,
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  operation_id text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  mode text NOT NULL,
  code text COLLATE "C" NOT NULL,
  phase ledger.phase NOT NULL,
  -- The pending transfer that a post or a void resolves.
  pending_id uuid,
  debit_id text COLLATE "C" NOT NULL,
  credit_id text COLLATE "C" NOT NULL,
  amount bigint NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
  -- The prepaid balance right after it, if it touches one. A retry gets the same again.
  prepaid_posted bigint,
  prepaid_held bigint,
  -- Transfers of an account are made one after the other, under its lock. Their transactions may have begun
  -- long before.
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The day of the transaction that made it, in UTC. A transfer and its entries have the same day, so that
  -- the entries of one transfer are in one partition, where the primary key sees them all.
  booked_on date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
  CHECK ((phase IN ('post', 'void')) = (pending_id IS NOT NULL))
);
CREATE UNIQUE INDEX transfer_resolves_once ON ledger.transfer (pending_id) WHERE pending_id IS NOT NULL;
-- What an account booked in a time, for its statements (docs/decisions/statements.md).
CREATE INDEX transfer_booked ON ledger.transfer (partner_id, mode, created_at) INCLUDE (code, amount)
  WHERE phase IN ('single', 'post');

-- Partitioned by year (docs/decisions/time-partitions.md). Nobody may drop a partition.
CREATE TABLE ledger.entry (
  transfer_id uuid NOT NULL,
  side ledger.side NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  amount bigint NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
  -- If the account is tracked: its balance after this entry, and the number of the entry in the account's
  -- chain.
  balance_after bigint,
  account_version bigint,
  booked_on date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
  PRIMARY KEY (transfer_id, side, booked_on)
) PARTITION BY RANGE (booked_on);
CREATE TABLE ledger.entry_default PARTITION OF ledger.entry DEFAULT;
-- An account's chain is unique within each year. From one year to the next, the version in the account's row
-- continues
  -- it.
  CREATE UNIQUE INDEX entry_default_chain ON ledger.entry_default (account_id, account_version)
  WHERE account_version IS NOT NULL;

-- What apply_operations() works with. The row types of the tables would do, but it copies these often, so
-- they are small.
CREATE TYPE ledger.step AS (
  operation integer, operation_id text, partner_id text, mode text,
  id uuid, code text, phase ledger.phase, pending_id uuid, debit_id text, credit_id text, amount bigint,
  fingerprint bytea, prepaid_posted bigint, prepaid_held bigint
);
CREATE TYPE ledger.account_state AS (
  id text, partner_id text, mode text, kind ledger.account_kind, tracked boolean,
  posted bigint, held bigint, version bigint, floor bigint
);
-- Of a code: is_permitted says whether the caller may post it.
CREATE TYPE ledger.flow AS (
  code text, debit_kind ledger.account_kind, credit_kind ledger.account_kind, may_overdraw boolean, may_hold boolean,
  mode text, is_permitted boolean
);
CREATE TYPE ledger.new_entry AS (
  transfer_id uuid, side ledger.side, account_id text, amount bigint, balance_after bigint, account_version bigint
);

GRANT SELECT ON ledger.account TO card_issuing_app, card_issuing_operator;
GRANT SELECT ON ledger.code TO card_issuing_app, card_issuing_operator;
GRANT SELECT ON ledger.transfer TO card_issuing_app, card_issuing_operator;
GRANT SELECT ON ledger.entry TO card_issuing_app, card_issuing_operator;
