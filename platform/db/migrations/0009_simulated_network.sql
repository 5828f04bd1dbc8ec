-- Up Migration

-- The state of the simulated card network. It stands for somebody else's system: nothing outside
-- issuers/simulated reads it, and no key leads from our tables into it or back. It has no cardholder's name.
CREATE SCHEMA simulated_network;

-- One operation by its token. The network has accepted it once taken_at is set; before that, the row only counts the
-- attempts it refused. What it reports follows from the clock: accepted until completes_at, then the outcome. If
-- completes_at is NULL, it is never completed.
CREATE TABLE simulated_network.operation (
  token text PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('card.issuance', 'card.topup', 'card.status')),
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

GRANT USAGE ON SCHEMA simulated_network TO card_issuing_app;
GRANT SELECT, INSERT, UPDATE (attempts, taken_at, outcome, completes_at) ON simulated_network.operation TO card_issuing_app;
GRANT SELECT, INSERT, UPDATE (status) ON simulated_network.card TO card_issuing_app;
GRANT SELECT, INSERT, DELETE, UPDATE (due_at, attempts) ON simulated_network.callback TO card_issuing_app;
