-- Up Migration

CREATE TABLE partner (
  id text PRIMARY KEY,
  name text NOT NULL,
  secure_details_enabled boolean NOT NULL DEFAULT false,
  -- Negotiated fee plan and limits; NULL means the platform's. Shapes: FeePlan and AccountLimits in domain/.
  fee_plan jsonb,
  limits jsonb,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- What an account has used of its limits in one mode. Its row lock is also the order in which the account's
-- issuances and credits are decided.
CREATE TABLE account_usage (
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  open_cards integer NOT NULL DEFAULT 0 CHECK (open_cards >= 0),
  loaded_on date NOT NULL DEFAULT '-infinity',
  loaded_cents bigint NOT NULL DEFAULT 0 CHECK (loaded_cents >= 0),
  PRIMARY KEY (partner_id, mode)
);

-- An API key is kept as a keyed hash alone; the hint is what a person recognises it by.
CREATE TABLE api_key (
  id text PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  name text,
  hash bytea NOT NULL UNIQUE,
  hint text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz
);
CREATE INDEX api_key_of_partner ON api_key (partner_id);

CREATE TABLE product (
  code text PRIMARY KEY,
  bin text NOT NULL,
  network text NOT NULL,
  is_current boolean NOT NULL DEFAULT false,
  retired_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK (NOT (is_current AND retired_at IS NOT NULL))
);
CREATE UNIQUE INDEX product_one_current ON product (is_current) WHERE is_current;

-- Products an account may issue beside the current one.
CREATE TABLE partner_product (
  partner_id text NOT NULL REFERENCES partner,
  product_code text NOT NULL REFERENCES product,
  PRIMARY KEY (partner_id, product_code)
);

CREATE TABLE card (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  status text NOT NULL CHECK (status IN ('funding_pending', 'active', 'frozen', 'blocked', 'failed')),
  external_ref text NOT NULL,
  card_name text,
  cardholder_first_name text,
  cardholder_last_name text,
  email text,
  product_code text NOT NULL REFERENCES product,
  network text NOT NULL,
  network_card_id text,
  last4 text CHECK (last4 ~ '^[0-9]{4}$'),
  exp_month smallint CHECK (exp_month BETWEEN 1 AND 12),
  exp_year smallint,
  failure_code text,
  -- What the issuance puts on the card, and its fees: [{ type, amount }].
  funding_cents bigint NOT NULL CHECK (funding_cents > 0),
  fees jsonb NOT NULL,
  -- Set while the issuance is past its deadline and waits for an operator.
  overdue_since timestamptz,
  created_at timestamptz NOT NULL,
  UNIQUE (id, partner_id, mode),
  CHECK ((status = 'failed') = (failure_code IS NOT NULL))
);
CREATE UNIQUE INDEX card_external_ref ON card (partner_id, mode, external_ref) WHERE status <> 'failed';
CREATE INDEX card_newest ON card (partner_id, mode, id DESC);
CREATE INDEX card_newest_of_status ON card (partner_id, mode, status, id DESC);
CREATE INDEX card_newest_of_external_ref ON card (partner_id, mode, external_ref, id DESC);
CREATE INDEX card_pending ON card (created_at) WHERE status = 'funding_pending';

-- One use of an Idempotency-Key: what was asked, and, once there is one, the answer. Request and answer can hold a
-- cardholder's name, so both are sealed with the key ring.
CREATE TABLE idempotency_claim (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  key text NOT NULL,
  operation text NOT NULL,
  fingerprint bytea NOT NULL,
  request bytea,
  -- The Request-Id of the request that made the claim; error bodies carry it.
  request_id text NOT NULL,
  -- Until when the process that runs the request may be taken for alive.
  lease_expires_at timestamptz NOT NULL,
  -- When the sweep last started the work of a claim whose process had died.
  swept_at timestamptz,
  response_status smallint,
  response_body bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (partner_id, mode, key),
  CHECK ((response_status IS NULL) = (response_body IS NULL))
);
CREATE INDEX idempotency_claim_unanswered ON idempotency_claim (lease_expires_at) WHERE response_status IS NULL;
CREATE INDEX idempotency_claim_age ON idempotency_claim (created_at);

CREATE TABLE faucet_credit (
  id text PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode = 'test'),
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX faucet_credit_recent ON faucet_credit (partner_id, created_at);

-- A manual credit (positive) or debit (negative) of the prepaid balance.
CREATE TABLE balance_adjustment (
  id text PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  amount_cents bigint NOT NULL CHECK (amount_cents <> 0),
  reason text NOT NULL,
  key text,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (partner_id, mode, key)
);

-- What partners are told. The body is fixed here, in the transaction that makes the change.
CREATE TABLE event (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  type text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  body text NOT NULL,
  created_at timestamptz NOT NULL,
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode)
);
CREATE INDEX event_newest ON event (partner_id, mode, id DESC);
CREATE INDEX event_of_card ON event (card_id);

CREATE TABLE audit_entry (
  id text COLLATE "C" PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  actor text NOT NULL,
  action text NOT NULL,
  subject text NOT NULL,
  detail jsonb NOT NULL
);
CREATE INDEX audit_entry_at ON audit_entry (at);

GRANT SELECT, INSERT, UPDATE ON partner, account_usage, api_key, product, card, idempotency_claim TO card_issuing_app;
GRANT SELECT, INSERT ON faucet_credit, balance_adjustment, event, audit_entry, partner_product TO card_issuing_app;
-- A refusal in the same call leaves no card behind; old claims are pruned.
GRANT DELETE ON card, idempotency_claim, partner_product TO card_issuing_app;
-- Readiness says which migration a process found.
GRANT SELECT ON schema_migration TO card_issuing_app;
