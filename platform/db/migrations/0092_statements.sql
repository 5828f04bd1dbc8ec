-- Up Migration

-- What an account booked in a time, for its statements (docs/decisions/statements.md). Where there are many transfers, build this
-- before the upgrade with CREATE INDEX CONCURRENTLY (docs/operating.md#upgrading).
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS transfer_booked ON ledger.transfer (partner_id, mode, created_at) INCLUDE (code, amount)
  WHERE phase IN ('single', 'post');

-- A day of an account that is over: what was booked on it, and the balances that it left. Days without any transfer have no row.
-- Nobody may change one.
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
GRANT SELECT ON day_closing TO card_issuing_app, card_issuing_operator;
GRANT INSERT ON day_closing TO card_issuing_worker;
