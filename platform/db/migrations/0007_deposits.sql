-- Up Migration

CREATE TABLE deposit (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL REFERENCES partner,
  mode text COLLATE "C" NOT NULL,
  -- The chain, and the contract of the token on it.
  network text COLLATE "C" NOT NULL,
  contract_address text NOT NULL,
  address_index integer UNIQUE,
  address text NOT NULL,
  -- The 20 bytes of the address, as logs on the chain have it.
  address_hash bytea CHECK (octet_length(address_hash) = 20),
  amount_cents bigint NOT NULL CHECK (amount_cents BETWEEN 1 AND 9007199254740991),
  status text COLLATE "C" NOT NULL DEFAULT 'awaiting_payment'
    CHECK (status IN ('awaiting_payment', 'confirming', 'confirmed', 'expired', 'needs_review', 'returned')),
  -- How much of what has arrived is in the balance.
  credited_cents bigint NOT NULL DEFAULT 0 CHECK (credited_cents BETWEEN 0 AND 9007199254740991),
  -- If confirming: the block with a payment, which is not solid yet.
  seen_block_number bigint,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  confirmed_at timestamptz,
  review_since timestamptz,
  -- The number of changes of this row, the time of the last one, and the number that its workflow knows of.
  version integer NOT NULL DEFAULT 1,
  changed_at timestamptz NOT NULL DEFAULT now(),
  -- NULL for a test deposit, which has no workflow.
  told_version integer DEFAULT 0,
  -- Until then, a worker is taken to be notifying the workflow.
  lease_expires_at timestamptz NOT NULL DEFAULT '-infinity',
  -- What payment its partner asked for.
  test_payment text,
  -- When the sweep next does something with it, in the account's time: its payment arrives, or it expires.
  due_at timestamptz,
  UNIQUE (network, address_hash),
  UNIQUE (id, partner_id, mode),
  CHECK ((status = 'confirming') = (seen_block_number IS NOT NULL)),
  CHECK ((status = 'needs_review') = (review_since IS NOT NULL)),
  CHECK ((confirmed_at IS NOT NULL) = (credited_cents > 0)),
  CONSTRAINT deposit_of_mode CHECK (CASE mode
    WHEN 'live' THEN network IN ('mainnet', 'nile', 'shasta', 'private') AND address_index IS NOT NULL
    AND address_hash IS NOT NULL AND told_version IS NOT NULL AND test_payment IS NULL AND due_at IS NULL
    WHEN 'test' THEN network = 'test' AND address_index IS NULL AND address_hash IS NULL AND told_version IS NULL
    AND test_payment IS NOT NULL AND test_payment IN ('exact', 'short', 'over', 'late', 'none')
    ELSE false END)
) WITH (fillfactor = 80);
CREATE INDEX deposit_newest ON deposit (partner_id, mode, id);
CREATE INDEX deposit_newest_of_status ON deposit (status, id);
CREATE INDEX deposit_to_expire ON deposit (network, expires_at) WHERE status = 'awaiting_payment';
CREATE INDEX deposit_confirming ON deposit (network, seen_block_number) WHERE status = 'confirming';
CREATE INDEX deposit_open_of_account ON deposit (partner_id, mode) WHERE status IN ('awaiting_payment', 'confirming');
CREATE INDEX deposit_in_review_of_account ON deposit (partner_id, mode) WHERE status = 'needs_review';
CREATE INDEX deposit_untold ON deposit (partner_id, id) WHERE told_version < version;
CREATE INDEX deposit_due ON deposit (partner_id, due_at, id) WHERE due_at IS NOT NULL;
-- What operators look at, however many test deposits there are.
CREATE INDEX deposit_newest_live ON deposit (id) WHERE mode = 'live';
CREATE INDEX deposit_newest_of_mode_and_status ON deposit (mode, status, id);
-- The numbers of deposit addresses, which are derived from TRON_XPUB (BIP-32: not hardened, so at most 2^31 -
-- 1). None is used twice.
CREATE SEQUENCE deposit_address_index AS integer MINVALUE 0 MAXVALUE 2147483647 START 0 NO CYCLE;

-- A transfer of the token to one of our addresses, in a solid block. Each is recorded once, and never
-- deleted.
CREATE TABLE deposit_payment (
  network text COLLATE "C" NOT NULL,
  tx_hash text COLLATE "C" NOT NULL CHECK (tx_hash ~ '^[0-9a-f]{64}$'),
  -- Its place in the transaction's log.
  log_index integer NOT NULL CHECK (log_index >= 0),
  deposit_id text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  value_micro_usdt numeric(78, 0) NOT NULL CHECK (value_micro_usdt > 0),
  block_number bigint NOT NULL CHECK (block_number > 0),
  -- Of the transaction in its block.
  transaction_index integer NOT NULL,
  block_time timestamptz NOT NULL,
  -- found: neither credited nor in review yet.
  status text COLLATE "C" NOT NULL DEFAULT 'found' CHECK (status IN ('found', 'credited', 'in_review', 'returned')),
  review_reason text
    CHECK (review_reason IN ('other_amount', 'late', 'already_paid', 'balance_out_of_range')),
  found_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (network, tx_hash, log_index),
  FOREIGN KEY (deposit_id, partner_id, mode) REFERENCES deposit (id, partner_id, mode),
  CHECK (status <> 'in_review' OR review_reason IS NOT NULL)
);
CREATE INDEX deposit_payment_of_deposit ON deposit_payment (deposit_id, block_number, transaction_index, log_index);
-- Payments to judge, by account.
CREATE INDEX deposit_payment_found_of_account ON deposit_payment (partner_id, mode, deposit_id)
  WHERE status = 'found';

-- Transfers to our addresses, in a block that enough nodes agree on, that too few nodes have shown so far or
-- some deny (docs/decisions/tron-nodes.md). They are not payments yet. When enough nodes show one, it moves
-- to deposit_payment; when enough deny it, it is deleted.
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
  -- Nodes may show different recipients or amounts at the same place in a log.
  PRIMARY KEY (network, tx_hash, log_index, deposit_id, value_micro_usdt),
  FOREIGN KEY (deposit_id, partner_id, mode) REFERENCES deposit (id, partner_id, mode)
);
CREATE INDEX unconfirmed_payment_of_deposit ON unconfirmed_payment (deposit_id);

-- What an operator decided about all payments of a deposit that were in review.
CREATE TABLE deposit_resolution (
  deposit_id text COLLATE "C" NOT NULL REFERENCES deposit,
  -- The deposit's version when it was decided.
  version integer NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('credited', 'returned')),
  credited_cents bigint NOT NULL CHECK ((credited_cents > 0) = (outcome = 'credited')),
  reason text NOT NULL,
  actor text NOT NULL,
  resolved_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (deposit_id, version)
);

-- How far each chain has been read. The block is the last one whose payments to us are recorded.
CREATE TABLE chain_scan (
  network text COLLATE "C" PRIMARY KEY CHECK (network IN ('mainnet', 'nile', 'shasta', 'private')),
  block_number bigint NOT NULL CHECK (block_number >= 0),
  -- The highest one ever read. A rescan may begin anywhere up to it.
  furthest_block_number bigint NOT NULL DEFAULT 0,
  -- NULL after a rescan was requested: the next block is accepted whatever its parent.
  block_hash text COLLATE "C",
  block_time timestamptz,
  -- The last known state of the chain: its newest solid block, and each node: [{ name, state, problem, since
  -- }].
  solid_block_number bigint,
  node text,
  nodes jsonb NOT NULL DEFAULT '[]',
  checked_at timestamptz
) WITH (fillfactor = 50);

GRANT SELECT, UPDATE (due_at) ON deposit TO card_issuing_app;
GRANT INSERT ON deposit TO card_issuing_api;
GRANT UPDATE (status, credited_cents, seen_block_number, confirmed_at, review_since,
  version, changed_at, told_version, lease_expires_at) ON deposit TO card_issuing_worker;
GRANT SELECT, UPDATE (status, credited_cents, seen_block_number, confirmed_at,
  review_since, version, changed_at) ON deposit TO card_issuing_operator;
GRANT USAGE ON deposit_address_index TO card_issuing_api;
GRANT SELECT ON deposit_payment TO card_issuing_app;
GRANT INSERT, UPDATE (status, review_reason) ON deposit_payment TO card_issuing_worker;
GRANT SELECT, UPDATE (status, review_reason) ON deposit_payment TO card_issuing_operator;
GRANT SELECT, INSERT, DELETE, UPDATE (says, asked_at) ON unconfirmed_payment TO card_issuing_app;
GRANT SELECT ON unconfirmed_payment TO card_issuing_operator;
GRANT SELECT ON deposit_resolution TO card_issuing_app;
GRANT INSERT ON deposit_resolution TO card_issuing_worker;
GRANT SELECT, INSERT ON deposit_resolution TO card_issuing_operator;
GRANT SELECT ON chain_scan TO card_issuing_app;
GRANT INSERT, UPDATE (block_number, furthest_block_number, block_hash, block_time, solid_block_number, node,
  nodes, checked_at) ON chain_scan TO card_issuing_worker;
GRANT SELECT, UPDATE (block_number, block_hash, block_time) ON chain_scan TO card_issuing_operator;
