-- Up Migration

-- The card network that has this database's live data (docs/decisions/one-live-network.md). No row: nothing
-- live has been made.
CREATE TABLE live_network (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  network text NOT NULL COLLATE "C"
);

-- The rate of requests to a card network, shared by all processes (docs/decisions/request-budget.md). Nobody
-- holds anything here: a process that dies has at most used up a turn.
CREATE TABLE request_budget (
  network text COLLATE "C" PRIMARY KEY,
  -- When the bucket is full again.
  full_at timestamptz NOT NULL DEFAULT now(),
  -- The network said to send nothing before.
  paused_until timestamptz NOT NULL DEFAULT now(),
  -- When each kind of request gets its next turn whatever the bucket has, so that none waits for ever.
  authorization_promised_at timestamptz NOT NULL DEFAULT now(),
  reveal_promised_at timestamptz NOT NULL DEFAULT now(),
  operation_promised_at timestamptz NOT NULL DEFAULT now(),
  event_promised_at timestamptz NOT NULL DEFAULT now(),
  reconciliation_promised_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
INSERT INTO request_budget (network) VALUES ('increase'), ('lithic');

-- What has changed at the card network: a payment of a card's, or a transfer between accounts there. A message is
-- only a reason to look, so each has one row, until it has been looked at (docs/decisions/inbox.md).
CREATE TABLE network_inbox (
  -- The network's id of the payment or the transfer.
  id text COLLATE "C" PRIMARY KEY,
  network text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('payment', 'transfer')),
  -- A new one with each arrival. It ends only if nothing has arrived since it was taken: neither in this row, nor
  -- in one that came after it.
  seq bigint GENERATED ALWAYS AS IDENTITY,
  -- The newest state of it, sealed, if the network sends it whole; and how new that is, compared part by part.
  body bytea,
  size_bytes integer NOT NULL DEFAULT 0,
  version jsonb,
  network_card_id text COLLATE "C",
  -- Whose card it is, if that was known when it arrived: accounts take turns.
  partner_id text COLLATE "C",
  -- Why the last attempt did not end it, and what a person may have to decide of it.
  reason text COLLATE "C" CHECK (reason IN ('card_unknown', 'card_not_issued', 'card_failed', 'unbookable',
    'authorization_unknown', 'network_unavailable', 'not_readable', 'not_taken')),
  elements jsonb NOT NULL DEFAULT '[]',
  attempts integer NOT NULL DEFAULT 0,
  retry_after timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((body IS NULL) = (version IS NULL))
);
CREATE INDEX network_inbox_due ON network_inbox (network, retry_after, id);
CREATE INDEX network_inbox_of_account ON network_inbox (partner_id, retry_after) WHERE attempts = 0;
CREATE INDEX network_inbox_of_card ON network_inbox (network_card_id) WHERE network_card_id IS NOT NULL;

-- What the card network has to move to or from a live card's account there, so that it has what the ledger says
-- (docs/decisions/card-networks.md). A trigger writes it with the posting.
CREATE TABLE true_up (
  id text COLLATE "C" PRIMARY KEY,
  direction text COLLATE "C" NOT NULL CHECK (direction IN ('from_card', 'to_card')),
  -- The ledger's transfer that it follows.
  transfer_id uuid NOT NULL UNIQUE,
  operation_id text COLLATE "C" NOT NULL,
  -- As the ledger names them: nothing else may keep it from posting.
  partner_id text NOT NULL,
  mode text NOT NULL CHECK (mode = 'live'),
  card_id text COLLATE "C" NOT NULL,
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  -- What the network is asked with; an operator's retry of a refused one asks with another.
  token text COLLATE "C" NOT NULL UNIQUE,
  status text COLLATE "C" NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'succeeded', 'refused', 'dismissed')),
  -- The network's reason for its last refusal.
  reason text,
  attempts integer NOT NULL DEFAULT 0,
  retry_after timestamptz NOT NULL DEFAULT '-infinity',
  created_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  CHECK ((status IN ('succeeded', 'dismissed')) = (ended_at IS NOT NULL)),
  CONSTRAINT true_up_reason_check
    CHECK (CASE status WHEN 'pending' THEN true WHEN 'refused' THEN reason IS NOT NULL ELSE reason IS NULL END)
);
-- Accounts take turns.
CREATE INDEX true_up_due ON true_up (partner_id, mode, direction, retry_after, id) WHERE status = 'pending';
CREATE INDEX true_up_waiting ON true_up (created_at) WHERE status IN ('pending', 'refused');
CREATE INDEX true_up_newest ON true_up (status, id);
CREATE INDEX true_up_of_card ON true_up (card_id, id);

-- How our record and the card network's lists differ, and what is wrong with how the network is set up
-- (docs/decisions/reconciliation.md). A row ends when a later run that covers it no longer finds it.
CREATE TABLE reconciliation_finding (
  id text COLLATE "C" PRIMARY KEY,
  network text COLLATE "C" NOT NULL,
  problem text COLLATE "C" NOT NULL CHECK (problem IN ('missing_here', 'missing_at_issuer', 'different', 'set_up')),
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('card', 'movement', 'transaction', 'network')),
  -- Our id, and the network's; empty if there is none.
  object_id text COLLATE "C" NOT NULL,
  issuer_id text COLLATE "C" NOT NULL,
  -- In words for an operator.
  detail text COLLATE "C" NOT NULL,
  -- What it is about was made after this time.
  made_after timestamptz NOT NULL,
  first_found_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_found_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  dismissed_at timestamptz,
  UNIQUE (network, problem, kind, object_id, issuer_id, detail)
);

-- The network's ids that a run has seen in its lists. It deletes them at its end.
CREATE TABLE reconciliation_seen (
  run_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  PRIMARY KEY (run_id, kind, key)
);

-- The state of the simulated card network. It stands for somebody else's system: nothing outside
-- issuers/simulated reads it, and no key leads from our tables into it or back. It has no cardholder's name.
CREATE SCHEMA simulated_network;
GRANT USAGE ON SCHEMA simulated_network TO card_issuing_app, card_issuing_operator;

-- One operation by its token. The network has accepted it once taken_at is set; before that, the row only
-- counts the attempts it refused. What it reports follows from the clock: accepted until completes_at, then
-- the outcome. If completes_at is NULL, it is never completed.
CREATE TABLE simulated_network.operation (
  token text PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('card.issuance', 'card.topup', 'card.withdrawal', 'card.status')),
  -- Asked again with the same token, it has to be asked for the same.
  request jsonb NOT NULL,
  attempts integer NOT NULL DEFAULT 1 CHECK (attempts > 0),
  created_at timestamptz NOT NULL DEFAULT now(),
  taken_at timestamptz,
  outcome text CHECK (outcome IN ('succeeded', 'declined', 'failed')),
  completes_at timestamptz,
  CHECK ((taken_at IS NULL) = (outcome IS NULL)),
  CHECK (completes_at >= taken_at)
);
CREATE INDEX operation_topups_of_card ON simulated_network.operation ((request ->> 'networkCardId'))
  WHERE kind = 'card.topup';

-- The card that an issuance makes. Its full number is derived when it is needed, and stored nowhere.
CREATE TABLE simulated_network.card (
  network_card_id text PRIMARY KEY,
  token text NOT NULL UNIQUE REFERENCES simulated_network.operation,
  last4 text NOT NULL CHECK (last4 ~ '^[0-9]{4}$'),
  exp_month smallint NOT NULL CHECK (exp_month BETWEEN 1 AND 12),
  exp_year smallint NOT NULL,
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'frozen', 'blocked'))
);

-- Callbacks that are still to be sent. A row is deleted when its callback is delivered or given up.
CREATE TABLE simulated_network.callback (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  token text NOT NULL REFERENCES simulated_network.operation,
  due_at timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0
);
CREATE INDEX callback_due ON simulated_network.callback (due_at);

GRANT SELECT, INSERT, UPDATE ON live_network TO card_issuing_app;
GRANT SELECT ON live_network TO card_issuing_operator;
-- A card network's first request adds its row (docs/decisions/request-budget.md).
GRANT SELECT, INSERT (network), UPDATE ON request_budget TO card_issuing_app, card_issuing_operator;
GRANT SELECT, INSERT, DELETE, UPDATE (seq, body, size_bytes, version, network_card_id, reason, elements, attempts,
  retry_after) ON network_inbox TO card_issuing_app, card_issuing_operator;
GRANT SELECT, UPDATE (status, reason, attempts, retry_after, ended_at) ON true_up TO card_issuing_app;
GRANT SELECT, UPDATE (token, status, reason, retry_after, ended_at) ON true_up TO card_issuing_operator;
GRANT SELECT, INSERT, DELETE, UPDATE (made_after, last_found_at, dismissed_at) ON reconciliation_finding TO
  card_issuing_app, card_issuing_operator;
GRANT SELECT, INSERT, DELETE ON reconciliation_seen TO card_issuing_app, card_issuing_operator;
GRANT SELECT, INSERT, UPDATE (attempts, taken_at, outcome, completes_at) ON simulated_network.operation TO
  card_issuing_app;
GRANT SELECT ON simulated_network.operation TO card_issuing_operator;
GRANT SELECT, INSERT, UPDATE (status) ON simulated_network.card TO card_issuing_app;
GRANT SELECT ON simulated_network.card TO card_issuing_operator;
GRANT SELECT, INSERT, DELETE, UPDATE (due_at, attempts) ON simulated_network.callback TO card_issuing_app;
