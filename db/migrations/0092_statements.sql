-- Up Migration

-- What an account booked in a time, for its statements (docs/decisions/statements.md). Where there are many transfers, build this
-- before the upgrade with CREATE INDEX CONCURRENTLY (docs/operating.md#upgrading).
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS transfer_booked ON ledger.transfer (partner_id, mode, created_at) INCLUDE (code, amount)
  WHERE phase IN ('single', 'post');

-- A month of an account that is over: what was booked in it, and the balances that it left. Months without any transfer have no
-- row. Nobody may change one.
CREATE TABLE month_closing (
  partner_id text COLLATE "C" NOT NULL REFERENCES partner,
  mode text COLLATE "C" NOT NULL CHECK (mode IN ('test', 'live')),
  -- Its first day.
  month date NOT NULL CHECK (extract(day FROM month) = 1),
  -- [{"code", "count", "cents"}]: the transfers of each code that were booked.
  flows jsonb NOT NULL,
  -- The prepaid balance when it began, and at its end.
  opening_cents bigint NOT NULL,
  closing_cents bigint NOT NULL,
  -- What all cards had together.
  cards_opening_cents bigint NOT NULL,
  cards_closing_cents bigint NOT NULL,
  PRIMARY KEY (partner_id, mode, month)
);
GRANT SELECT ON month_closing TO card_issuing_app, card_issuing_operator;
GRANT INSERT ON month_closing TO card_issuing_worker;
