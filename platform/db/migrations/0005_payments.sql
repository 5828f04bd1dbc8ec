-- Up Migration

-- Money that a merchant has asked a card for and not yet taken (docs/partners/authorizations.md). While it is
-- pending, the ledger has one hold of held_cents for it, in the operation auth/<id>.
CREATE TABLE card_authorization (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  -- The network's id for it; NULL if a partner made it in test mode.
  network_authorization_id text COLLATE "C",
  status text NOT NULL CHECK (status IN ('pending', 'declined', 'closed', 'reversed', 'expired')),
  -- What was authorized in total, what is held of it, and what was cleared, which may be more.
  amount_cents bigint NOT NULL CHECK (amount_cents >= 0),
  held_cents bigint NOT NULL CHECK (held_cents >= 0),
  settled_cents bigint NOT NULL CHECK (settled_cents >= 0),
  -- What the network holds, which is more than our hold if the card lacked it: it counts towards spending
  -- limits.
  target_cents bigint CHECK (target_cents >= held_cents),
  decline_reason text,
  merchant_name text,
  merchant_category_code text,
  merchant_city text,
  merchant_country text,
  -- [{ type, amount, approved, decline_reason, created }], the oldest first.
  requests jsonb NOT NULL,
  -- How many holds it has had; the ledger's steps are named after it.
  holds integer NOT NULL,
  expires_at timestamptz,
  created_at timestamptz NOT NULL,
  UNIQUE (id, partner_id, mode),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  CHECK ((status = 'declined') = (decline_reason IS NOT NULL)),
  CHECK ((status = 'declined') = (expires_at IS NULL)),
  CHECK (jsonb_array_length(requests) BETWEEN 1 AND 100),
  CONSTRAINT card_authorization_held CHECK (status = 'pending' OR held_cents = 0)
);
CREATE UNIQUE INDEX card_authorization_of_network ON card_authorization (mode, network_authorization_id);
CREATE INDEX card_authorization_newest ON card_authorization (partner_id, mode, id);
CREATE INDEX card_authorization_newest_of_card ON card_authorization (card_id, id);
CREATE INDEX card_authorization_newest_of_status ON card_authorization (card_id, status, id);
CREATE INDEX card_authorization_due ON card_authorization (partner_id, mode, expires_at, id) WHERE status = 'pending';
-- GET /authorizations by status, and GET /events of a card.
CREATE INDEX card_authorization_newest_of_status_of_all ON card_authorization (partner_id, mode, status, id);

-- A purchase, a decline or a refund, as the network settled it.
CREATE TABLE card_transaction (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  -- The id that the network, or the simulation of it, has for the transaction.
  network_transaction_id text NOT NULL,
  type text NOT NULL CHECK (type IN ('purchase', 'decline', 'refund')),
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  -- [{ type, amount }]
  fees jsonb NOT NULL,
  merchant_name text,
  merchant_category_code text,
  merchant_city text,
  merchant_country text,
  decline_reason text,
  charged_to text NOT NULL CHECK (charged_to IN ('card', 'partner_balance', 'both')),
  card_balance_after_cents bigint NOT NULL,
  created_at timestamptz NOT NULL,
  -- A clearing is a purchase of an authorization. Its amount comes from the authorization's hold, then from
  -- what else is on the card, then from the prepaid balance.
  authorization_id text COLLATE "C",
  -- It clears the authorization of its payment, which may not be known yet.
  of_authorization boolean NOT NULL DEFAULT false,
  from_hold_cents bigint NOT NULL DEFAULT 0,
  -- What the prepaid balance paid, if both did.
  partner_balance_cents bigint,
  -- The card network's id of what a transaction is part of, by which the reconciliation reads all of it
  -- (docs/decisions/reconciliation.md).
  network_payment_id text COLLATE "C",
  -- The purchase that a refund gives money back for; NULL for everything else, and if it is not known
  -- (docs/partners/transactions.md).
  refunded_transaction_id text COLLATE "C",
  UNIQUE (id, partner_id, mode),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  CHECK ((type = 'decline') = (decline_reason IS NOT NULL)),
  CONSTRAINT card_transaction_authorization
    FOREIGN KEY (authorization_id, partner_id, mode) REFERENCES card_authorization (id, partner_id, mode),
  CONSTRAINT card_transaction_shares
    CHECK ((charged_to = 'both') = (partner_balance_cents IS NOT NULL)
    AND coalesce(partner_balance_cents BETWEEN 1 AND amount_cents - 1, true))
);
-- One message can ask for money and take it, so that a request that we declined and its clearing have one id.
CREATE UNIQUE INDEX card_transaction_of_network ON card_transaction (mode, network_transaction_id, (type = 'decline'));
CREATE INDEX card_transaction_newest ON card_transaction (partner_id, mode, id);
CREATE INDEX card_transaction_newest_of_card ON card_transaction (card_id, id);
-- GET /transactions by type, of the account or of a card.
CREATE INDEX card_transaction_newest_of_type ON card_transaction (partner_id, mode, type, id);
CREATE INDEX card_transaction_newest_of_card_and_type ON card_transaction (card_id, type, id);
-- What was refunded of a purchase, and which purchase is part of the network's payment. The new column is
-- empty, and few transactions have the network's payment.
CREATE INDEX card_transaction_refunds ON card_transaction (refunded_transaction_id)
  WHERE refunded_transaction_id IS NOT NULL;
CREATE INDEX card_transaction_of_payment ON card_transaction (card_id, network_payment_id)
  WHERE network_payment_id IS NOT NULL;

-- Payments (docs/decisions/payments.md): what the network said of each, and what we decided, beside what
-- partners see of it.
CREATE TABLE payment (
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  -- The network's id; in test mode, its authorization's.
  payment_id text COLLATE "C" NOT NULL,
  partner_id text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  authorization_id text COLLATE "C" REFERENCES card_authorization,
  -- What the network said last, and every request with our decision and its word.
  said jsonb NOT NULL,
  requests jsonb NOT NULL,
  -- What was cleared of its authorization, or before that was known.
  cleared_cents bigint NOT NULL CHECK (cleared_cents >= 0),
  -- Our clock ended it, whatever the network holds.
  is_expired boolean NOT NULL,
  -- When it is read again at an issuer, whether or not anything is told; NULL if it is over.
  read_after timestamptz,
  PRIMARY KEY (mode, payment_id),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode)
);
CREATE INDEX payment_to_read ON payment (read_after) WHERE read_after IS NOT NULL;
CREATE INDEX payment_unreadable ON payment (payment_id) WHERE said -> 'unreadable' <> '[]';

-- What an element of a payment means that only a person could say; the audit log has why.
CREATE TABLE payment_element (
  -- The network's id.
  id text COLLATE "C" PRIMARY KEY,
  means text COLLATE "C" NOT NULL CHECK (means IN ('purchase', 'refund', 'nothing')),
  amount_cents bigint CHECK (amount_cents > 0),
  -- The payment, and the card that it is on, if not the one that the network names.
  payment_id text COLLATE "C" NOT NULL,
  card_id text COLLATE "C",
  -- Who said so, and with which login. A large amount counts only once another person has approved it.
  requested_by text NOT NULL,
  requested_login text NOT NULL DEFAULT session_user,
  approved boolean NOT NULL,
  approved_by text,
  approved_login text,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((means = 'nothing') = (amount_cents IS NULL)),
  CHECK (approved OR approved_by IS NULL),
  CHECK (approved_by <> requested_by AND approved_login <> requested_login)
);

-- What the simulated network has said, once each: repeated, a message gets the same answer and changes nothing.
CREATE TABLE simulated_message (
  -- The network's id.
  id text COLLATE "C" PRIMARY KEY,
  -- The order in which they were recorded, which is that in which they are booked.
  seq bigint GENERATED ALWAYS AS IDENTITY,
  payment_id text COLLATE "C" NOT NULL,
  network_card_id text COLLATE "C" NOT NULL,
  said jsonb NOT NULL,
  -- What became of it; NULL as long as it can't be booked.
  answer jsonb,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX simulated_message_waiting ON simulated_message (payment_id, seq) WHERE answer IS NULL;

-- What a card has spent in the latest interval of a limit (docs/decisions/spending-controls.md). Triggers
-- keep it right; the first decision of an interval makes it.
CREATE TABLE spending_counter (
  card_id text COLLATE "C" NOT NULL,
  partner_id text NOT NULL,
  mode text NOT NULL,
  -- The limit's interval and categories, not its amount: a limit that only changes its amount keeps its
  -- counter.
  limit_key text COLLATE "C" NOT NULL,
  -- -infinity and infinity if it counts since ever.
  starts_at timestamptz NOT NULL,
  ends_at timestamptz NOT NULL,
  -- The merchant category codes that it counts; NULL for all.
  categories text[],
  -- What counts in the interval, less its refunds, so it may be below zero.
  net_cents bigint NOT NULL,
  -- A refund gives back at most what its interval had spent by then (docs/partners/spending-controls.md).
  -- If there are any, what an earlier change does to the sum depends on what came after it.
  has_refunds boolean NOT NULL DEFAULT false,
  -- The newest of what is counted, as what follows its id's prefix; '' if there is nothing.
  last_item text COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (card_id, limit_key),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  CHECK (starts_at < ends_at)
) WITH (fillfactor = 80);

GRANT SELECT, INSERT, UPDATE (status, amount_cents, held_cents, settled_cents, target_cents, decline_reason,
  requests, holds, expires_at) ON card_authorization TO card_issuing_app, card_issuing_operator;
GRANT SELECT, INSERT, UPDATE (authorization_id, said, requests, cleared_cents, is_expired, read_after) ON
  payment TO card_issuing_app, card_issuing_operator;
GRANT SELECT, INSERT, UPDATE (answer) ON simulated_message TO card_issuing_app, card_issuing_operator;
GRANT SELECT ON payment_element TO card_issuing_app;
GRANT SELECT, INSERT, DELETE, UPDATE (approved, approved_by, approved_login) ON payment_element TO card_issuing_operator;
GRANT SELECT, INSERT, UPDATE (authorization_id) ON card_transaction TO card_issuing_app,
  card_issuing_operator;
GRANT SELECT, INSERT, DELETE, UPDATE (starts_at, ends_at, net_cents, has_refunds, last_item) ON
  spending_counter TO card_issuing_app, card_issuing_operator;
