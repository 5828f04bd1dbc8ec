-- Up Migration

-- One use of an Idempotency-Key: the request, and its response once there is one. Both are sealed with the
-- key ring, because they can hold a cardholder's name.
CREATE TABLE idempotency_claim (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  -- NULL if the request had none but a workflow does its work. NULLs are never equal, so no other request
  -- finds this claim.
  key text,
  operation text NOT NULL,
  fingerprint bytea NOT NULL,
  request bytea,
  -- The Request-Id of the request that made the claim; error bodies have it.
  request_id text NOT NULL,
  -- Until then, the process that runs the request is taken to be alive.
  lease_expires_at timestamptz NOT NULL,
  response_status smallint,
  response_body bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- The card that the operation is about, if it existed before.
  card_id text COLLATE "C",
  -- If nobody seems to work on the claim: when a worker may next start its work, and how often one has. Set
  -- before each start, so that workers share the claims, and later each time.
  sweep_after timestamptz NOT NULL DEFAULT '-infinity',
  sweep_attempts integer NOT NULL DEFAULT 0,
  -- The id of what the request makes, chosen with the claim: whoever works on it makes the same card, top-up
  -- or deposit. NULL if it makes nothing.
  resource_id text COLLATE "C",
  -- Who sent the request: the API key's id and the address. NULL for an operator's.
  api_key_id text COLLATE "C",
  client_address text,
  -- Whether an operator asked for it. A worker applies such a claim in test mode too.
  by_operator boolean NOT NULL DEFAULT false,
  -- What a claim stands for is an operation (docs/decisions/operations-are-claims.md). What is there already
  -- is completed, except for what the statements below find. in_progress, completed or awaiting_review. NULL:
  -- no operation, because it has no key, or a 400 as its response.
  operation_status text COLLATE "C",
  -- When nothing was left to happen.
  completed_at timestamptz,
  -- How often the card network was asked, if that took longer than the first time; what it said the last
  -- time, when that was, when it is asked next, and until when it may take.
  network_asked integer NOT NULL DEFAULT 0,
  network_last_answer text,
  network_last_asked_at timestamptz,
  network_next_ask_at timestamptz,
  network_deadline timestamptz,
  -- Why the card network's last answer was none, for operators: its status and code, never a body. NULL if it
  -- answered.
  network_problem text,
  UNIQUE (partner_id, mode, key),
  CHECK ((response_status IS NULL) = (response_body IS NULL))
);
CREATE INDEX idempotency_claim_age ON idempotency_claim (created_at);
CREATE INDEX idempotency_claim_to_sweep ON idempotency_claim (partner_id, mode, sweep_after, id)
  WHERE response_status IS NULL;
CREATE INDEX idempotency_claim_of_key ON idempotency_claim (api_key_id, id);
-- GET /operations.
CREATE INDEX idempotency_claim_newest_of_status
  ON idempotency_claim (partner_id, mode, operation_status, id);

-- Operators seal again what is sealed with another key.
GRANT SELECT, INSERT, DELETE, UPDATE (lease_expires_at, response_status, response_body, sweep_after,
  sweep_attempts, network_asked, network_last_answer, network_last_asked_at, network_next_ask_at,
  network_deadline, network_problem) ON idempotency_claim TO card_issuing_app;
GRANT SELECT, UPDATE (request, response_body) ON idempotency_claim TO card_issuing_operator;

-- The log of partners' requests (docs/partners/requests.md): what a request was and how it ended, and nothing that
-- a person typed. Written beside the requests, some at a time; kept for 7 days. Partitioned by day.
CREATE TABLE logged_request (
  -- The Request-Id.
  id text COLLATE "C" PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL CHECK (mode IN ('test', 'live')),
  method text NOT NULL,
  -- The route's pattern with ids of ours.
  path text COLLATE "C" NOT NULL,
  status smallint NOT NULL,
  error_code text,
  error_param text,
  api_key_id text COLLATE "C" NOT NULL,
  -- NULL if it can't be told.
  address text,
  idempotency_key text,
  operation_id text COLLATE "C",
  duration_ms integer NOT NULL
) PARTITION BY RANGE (id);
CREATE INDEX logged_request_newest ON logged_request (partner_id, mode, id);
CREATE TABLE logged_request_default PARTITION OF logged_request DEFAULT;
GRANT SELECT ON logged_request TO card_issuing_app, card_issuing_operator;
GRANT INSERT ON logged_request TO card_issuing_api;
