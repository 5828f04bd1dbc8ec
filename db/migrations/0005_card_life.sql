-- Up Migration

-- The card an operation is about, where there was one before it. A request without an Idempotency-Key has a claim too
-- where a workflow does its work; NULLs are never equal, so no other request meets it.
ALTER TABLE idempotency_claim ADD card_id text COLLATE "C", ALTER key DROP NOT NULL;

-- The claim of the status change under way; the next one waits until it is over.
ALTER TABLE card ADD status_change_claim_id text COLLATE "C";

CREATE TABLE topup (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  status text NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
  failure_code text,
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  -- [{ type, amount }]
  fees jsonb NOT NULL,
  -- The card's balance when the top-up ended.
  card_balance_cents bigint,
  -- Set while it is past its deadline and waits for an operator.
  overdue_since timestamptz,
  created_at timestamptz NOT NULL,
  completed_at timestamptz,
  UNIQUE (id, partner_id, mode),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  CHECK ((status = 'failed') = (failure_code IS NOT NULL)),
  CHECK ((status = 'pending') = (completed_at IS NULL)),
  CHECK ((status = 'pending') = (card_balance_cents IS NULL))
);
CREATE INDEX topup_newest_of_card ON topup (card_id, id DESC);
CREATE INDEX topup_pending ON topup (created_at) WHERE status = 'pending';
CREATE INDEX topup_pending_of_card ON topup (card_id) WHERE status = 'pending';

-- What a cardholder did, as the network settled it.
CREATE TABLE card_transaction (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  -- What the network calls it, or the simulation of it. What was asked for: a purchase can have become a decline.
  network_transaction_id text NOT NULL,
  requested_type text NOT NULL CHECK (requested_type IN ('purchase', 'decline', 'refund')),
  forced boolean NOT NULL,
  type text NOT NULL CHECK (type IN ('purchase', 'decline', 'refund')),
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  -- [{ type, amount }]
  fees jsonb NOT NULL,
  merchant_name text,
  merchant_category_code text,
  merchant_city text,
  merchant_country text,
  decline_reason text,
  charged_to text NOT NULL CHECK (charged_to IN ('card', 'partner_balance')),
  card_balance_after_cents bigint NOT NULL,
  created_at timestamptz NOT NULL,
  UNIQUE (id, partner_id, mode),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  CHECK ((type = 'decline') = (decline_reason IS NOT NULL)),
  CHECK (type = requested_type OR (requested_type = 'purchase' AND type = 'decline'))
);
CREATE INDEX card_transaction_newest_of_card ON card_transaction (card_id, id DESC);
CREATE UNIQUE INDEX card_transaction_of_network ON card_transaction (mode, network_transaction_id);
-- The network speaks of its own card ids. Two of our cards behind one of them would charge one for the other.
CREATE UNIQUE INDEX card_of_network ON card (network_card_id) WHERE mode = 'live';
-- A refund that reaches a blocked card.
INSERT INTO ledger.code (code, debit_kind, credit_kind, may_overdraw, may_hold) VALUES
  ('late_refund', 'network', 'prepaid', false, false);

-- One attempt to read a card's number, which counts towards the limit whether the network then answered or not. It is
-- the audit's row as well: no digit of the card is in it.
CREATE TABLE card_reveal (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  api_key_id text NOT NULL REFERENCES api_key,
  request_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode)
);
CREATE INDEX card_reveal_recent ON card_reveal (partner_id, mode, created_at);

ALTER TABLE simulated_network.operation DROP CONSTRAINT operation_kind_check,
  ADD CHECK (kind IN ('card.issuance', 'card.topup', 'card.status'));
ALTER TABLE simulated_network.card
  ADD status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'frozen', 'blocked'));
CREATE INDEX operation_topups_of_card ON simulated_network.operation ((request ->> 'networkCardId'))
  WHERE kind = 'card.topup';

GRANT SELECT, INSERT, UPDATE, DELETE ON topup TO card_issuing_app;
GRANT SELECT, INSERT ON card_transaction, card_reveal TO card_issuing_app;
GRANT UPDATE ON simulated_network.card TO card_issuing_app;
