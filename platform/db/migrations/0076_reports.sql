-- Up Migration

-- The transfers of reports that are in progress (docs/decisions/reports-are-streamed.md): an account has two slots in each
-- mode. Whoever holds one renews its lease, so a process that died loses it.
CREATE TABLE report_transfer (
  partner_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  slot smallint NOT NULL CHECK (slot BETWEEN 1 AND 2),
  -- The transfer that holds it.
  id uuid NOT NULL,
  leased_until timestamptz NOT NULL,
  PRIMARY KEY (partner_id, mode, slot)
) WITH (fillfactor = 50);
GRANT SELECT ON report_transfer TO card_issuing_app, card_issuing_operator;
GRANT INSERT, UPDATE, DELETE ON report_transfer TO card_issuing_api;
