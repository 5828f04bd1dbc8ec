-- Up Migration

-- The state of the simulated card network. It stands for a system of somebody else's: nothing outside
-- adapters/simulated-network reads it, and no key leads from our tables into it or back. No cardholder's name is kept.
CREATE SCHEMA simulated_network;

-- One operation by the token it was asked for with. The network has taken it once taken_at is set; before that it only
-- counts the attempts it refused. What it answers follows from the clock: accepted until completes_at, then the
-- outcome. completes_at without a value: never.
CREATE TABLE simulated_network.operation (
  token text PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('card.issuance')),
  -- What was asked for: asking again with the same token has to ask for the same.
  request jsonb NOT NULL,
  attempts integer NOT NULL DEFAULT 1 CHECK (attempts > 0),
  created_at timestamptz NOT NULL DEFAULT now(),
  taken_at timestamptz,
  outcome text CHECK (outcome IN ('succeeded', 'declined', 'failed')),
  completes_at timestamptz,
  CHECK ((taken_at IS NULL) = (outcome IS NULL)),
  CHECK (completes_at >= taken_at)
);

-- The card an issuance makes. The full number is derived when it is needed and kept nowhere.
CREATE TABLE simulated_network.card (
  network_card_id text PRIMARY KEY,
  token text NOT NULL UNIQUE REFERENCES simulated_network.operation,
  last4 text NOT NULL CHECK (last4 ~ '^[0-9]{4}$'),
  exp_month smallint NOT NULL CHECK (exp_month BETWEEN 1 AND 12),
  exp_year smallint NOT NULL
);

-- Callbacks still to be sent; a row goes when its callback is delivered or given up.
CREATE TABLE simulated_network.callback (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  token text NOT NULL REFERENCES simulated_network.operation,
  due_at timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0
);
CREATE INDEX callback_due ON simulated_network.callback (due_at);

GRANT USAGE ON SCHEMA simulated_network TO card_issuing_app;
GRANT SELECT, INSERT, UPDATE ON simulated_network.operation TO card_issuing_app;
GRANT SELECT, INSERT ON simulated_network.card TO card_issuing_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON simulated_network.callback TO card_issuing_app;
