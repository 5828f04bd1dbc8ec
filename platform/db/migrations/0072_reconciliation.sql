-- Up Migration

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

GRANT SELECT, INSERT, DELETE, UPDATE (made_after, last_found_at, dismissed_at) ON reconciliation_finding
  TO card_issuing_app, card_issuing_operator;
GRANT SELECT, INSERT, DELETE ON reconciliation_seen TO card_issuing_app, card_issuing_operator;
-- It compares with the simulated network, too.
GRANT USAGE ON SCHEMA simulated_network TO card_issuing_operator;
GRANT SELECT ON simulated_network.card, simulated_network.operation TO card_issuing_operator;
-- "operator network reconcile" books what the network never told, or keeps it.
GRANT INSERT, DELETE, UPDATE (retry_after) ON network_message TO card_issuing_operator;

-- The first run is next night.
INSERT INTO measurement (name, due_at) VALUES ('reconciliation', date_trunc('day', now(), 'UTC') + interval '28 hours');
