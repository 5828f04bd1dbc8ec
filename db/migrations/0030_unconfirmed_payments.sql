-- Up Migration

-- Transfers to addresses of ours, in a block that enough nodes agree on, that too few nodes have shown so far, or that some
-- deny (docs/decisions/tron-nodes.md). They are no payments yet: once enough nodes show them, they move to deposit_payment; once
-- enough deny them, they are deleted.
CREATE TABLE unconfirmed_payment (
  network text COLLATE "C" NOT NULL,
  tx_hash text COLLATE "C" NOT NULL CHECK (tx_hash ~ '^[0-9a-f]{64}$'),
  log_index integer NOT NULL CHECK (log_index >= 0),
  deposit_id text COLLATE "C" NOT NULL,
  value_micro_usdt numeric(78, 0) NOT NULL CHECK (value_micro_usdt > 0),
  partner_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  block_number bigint NOT NULL CHECK (block_number > 0),
  block_hash text COLLATE "C" NOT NULL,
  transaction_index integer NOT NULL,
  block_time timestamptz NOT NULL,
  -- What each node last said: [{ node, says }].
  says jsonb NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT now(),
  asked_at timestamptz NOT NULL DEFAULT now(),
  -- Nodes may show the same place in a log with different recipients or amounts.
  PRIMARY KEY (network, tx_hash, log_index, deposit_id, value_micro_usdt),
  FOREIGN KEY (deposit_id, partner_id, mode) REFERENCES deposit (id, partner_id, mode)
);
CREATE INDEX unconfirmed_payment_of_deposit ON unconfirmed_payment (deposit_id);

GRANT SELECT, INSERT, DELETE ON unconfirmed_payment TO card_issuing_app;
GRANT UPDATE (says, asked_at) ON unconfirmed_payment TO card_issuing_app;
GRANT SELECT ON unconfirmed_payment TO card_issuing_operator;
