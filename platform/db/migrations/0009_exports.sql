-- Up Migration

-- A day of an account that is over: what was booked on it, and the balances that it left. Days without any
-- transfer have no row. Nobody may change one.
CREATE TABLE day_closing (
  partner_id text COLLATE "C" NOT NULL REFERENCES partner,
  mode text COLLATE "C" NOT NULL CHECK (mode IN ('test', 'live')),
  -- In UTC and the account's time.
  day date NOT NULL,
  -- [{"code", "count", "cents"}]: the transfers of each code that were booked.
  flows jsonb NOT NULL,
  -- The prepaid balance at its end.
  closing_cents bigint NOT NULL,
  -- What all cards had together.
  cards_closing_cents bigint NOT NULL,
  PRIMARY KEY (partner_id, mode, day)
);

-- What cards spent and got back on days that have no closing yet, for GET /overview (docs/decisions/overview.md).
-- Each session of the database adds to rows of its own, so that none waits for another.
CREATE TABLE account_day (
  partner_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  -- In UTC and the account's time.
  day date NOT NULL,
  session integer NOT NULL,
  spent_cents bigint NOT NULL DEFAULT 0,
  refunded_cents bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (partner_id, mode, day, session)
) WITH (fillfactor = 50);

-- The transfers of reports that are in progress (docs/decisions/reports-are-streamed.md): an account has two
-- slots in each mode. Whoever holds one renews its lease, so a process that died loses it.
CREATE TABLE report_transfer (
  partner_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  slot smallint NOT NULL CHECK (slot BETWEEN 1 AND 2),
  -- The transfer that holds it.
  id uuid NOT NULL,
  leased_until timestamptz NOT NULL,
  PRIMARY KEY (partner_id, mode, slot)
) WITH (fillfactor = 50);

-- What one process measures of the whole database for all of them: the numbers of the metrics, and the check
-- of the ledger.
CREATE TABLE measurement (
  name text COLLATE "C" PRIMARY KEY,
  -- Whoever sets this to a later time does the next measurement.
  due_at timestamptz NOT NULL DEFAULT '-infinity',
  measured_at timestamptz,
  result jsonb,
  -- Since when something is to be measured, so that what was never measured can be late, too.
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((measured_at IS NULL) = (result IS NULL))
) WITH (fillfactor = 50);
INSERT INTO measurement (name) VALUES
  ('webhooks'), ('deposits'), ('attention'), ('ledger_check'), ('network_inbox'), ('authorizations');
-- The first run is next night.
INSERT INTO measurement (name, due_at) VALUES ('reconciliation', date_trunc('day', now(), 'UTC') + interval '28 hours');

GRANT SELECT ON day_closing TO card_issuing_app, card_issuing_operator;
GRANT INSERT ON day_closing TO card_issuing_worker;
GRANT SELECT ON account_day TO card_issuing_app, card_issuing_operator;
GRANT DELETE ON account_day TO card_issuing_worker;
GRANT SELECT ON report_transfer TO card_issuing_app, card_issuing_operator;
GRANT INSERT, DELETE, UPDATE ON report_transfer TO card_issuing_api;
GRANT SELECT, UPDATE ON measurement TO card_issuing_app, card_issuing_operator;
