-- Up Migration

-- The rate of requests to a card network, shared by all processes (docs/decisions/request-budget.md). Nobody holds anything
-- here: a process that dies has at most used up a turn.
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
GRANT SELECT, UPDATE ON request_budget TO card_issuing_app, card_issuing_operator;
