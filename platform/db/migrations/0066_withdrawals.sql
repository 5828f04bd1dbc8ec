-- Up Migration

-- Money from a card back to the prepaid balance (docs/partners/withdrawals.md). While it is pending, the ledger holds
-- amount_cents on the card for it, in the operation withdrawal/<id>.
CREATE TABLE withdrawal (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  status text NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
  failure_code text,
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  -- The card's balance when the withdrawal ended.
  card_balance_cents bigint,
  -- These are as in `topup`.
  overdue_since timestamptz,
  created_at timestamptz NOT NULL,
  completed_at timestamptz,
  decision jsonb,
  claim_id text COLLATE "C" REFERENCES idempotency_claim ON DELETE SET NULL,
  asked jsonb,
  not_recorded jsonb,
  UNIQUE (id, partner_id, mode),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  CHECK ((status = 'failed') = (failure_code IS NOT NULL)),
  CHECK ((status = 'pending') = (completed_at IS NULL)),
  CHECK ((status = 'pending') = (card_balance_cents IS NULL))
);
CREATE UNIQUE INDEX withdrawal_claim ON withdrawal (claim_id) WHERE claim_id IS NOT NULL;
CREATE INDEX withdrawal_pending ON withdrawal (created_at) WHERE status = 'pending';
CREATE INDEX withdrawal_newest ON withdrawal (partner_id, mode, id);
CREATE INDEX withdrawal_newest_of_card ON withdrawal (card_id, id);

-- The release before writes all but the last of these.
ALTER TABLE late_answer DROP CONSTRAINT late_answer_kind_check;
ALTER TABLE late_answer ADD CONSTRAINT late_answer_kind_check
  CHECK (kind IN ('card', 'topup', 'withdrawal')) NOT VALID;
ALTER TABLE simulated_network.operation DROP CONSTRAINT operation_kind_check;
ALTER TABLE simulated_network.operation ADD CONSTRAINT operation_kind_check
  CHECK (kind IN ('card.issuance', 'card.topup', 'card.withdrawal', 'card.status')) NOT VALID;

-- Whose a row is and what it is about never change.
GRANT SELECT, INSERT, DELETE ON withdrawal TO card_issuing_app;
GRANT UPDATE (status, failure_code, card_balance_cents, overdue_since, completed_at, decision, claim_id, not_recorded)
  ON withdrawal TO card_issuing_app;
GRANT SELECT, UPDATE (overdue_since, decision) ON withdrawal TO card_issuing_operator;
