-- Up Migration

-- Where an account's events go, in one mode. Secrets are sealed with the key ring.
CREATE TABLE webhook_endpoint (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL REFERENCES partner,
  mode text COLLATE "C" NOT NULL CHECK (mode IN ('test', 'live')),
  url text NOT NULL,
  status text NOT NULL DEFAULT 'enabled' CHECK (status IN ('enabled', 'disabled')),
  disabled_reason text,
  -- Whether requests also have the headers of Standard Webhooks.
  standard_headers boolean NOT NULL DEFAULT false,
  secret bytea NOT NULL,
  previous_secret bytea,
  previous_secret_expires_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When the account may start or notify its whole allowance of workflows again.
  workflows_full_at timestamptz NOT NULL DEFAULT '-infinity',
  -- The types of events it wants; NULL for all.
  event_types text[],
  description text,
  -- How its attempts went, counted as they are recorded.
  consecutive_failures integer NOT NULL DEFAULT 0,
  failing_since timestamptz,
  last_success_at timestamptz,
  last_failure_at timestamptz,
  last_failure_http_status smallint,
  last_failure_error text,
  -- Whether the event webhook_endpoint.failing was written since the last success.
  failing_told boolean NOT NULL DEFAULT false,
  -- Whether the event webhook_endpoint.failing is still to be written: a run of failures can end before a
  -- worker looks.
  failing_owed boolean NOT NULL DEFAULT false,
  CHECK ((status = 'disabled') = (disabled_reason IS NOT NULL)),
  CHECK ((previous_secret IS NULL) = (previous_secret_expires_at IS NULL))
);
CREATE INDEX webhook_endpoint_of_account ON webhook_endpoint (partner_id, mode, id);
CREATE INDEX webhook_endpoint_owed ON webhook_endpoint (id) WHERE failing_owed;

-- How many events an account can still ask for, in each mode (docs/partners/webhooks.md). It outlives its
-- endpoints, so that deleting one gives no more.
CREATE TABLE webhook_allowance (
  partner_id text COLLATE "C" NOT NULL REFERENCES partner,
  mode text COLLATE "C" NOT NULL CHECK (mode IN ('test', 'live')),
  -- When it is whole again.
  full_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, mode)
);

-- What partners are notified of. The transaction that makes the change fixes the body. An event is written
-- with its delivery, the delivery is removed first, and the event goes with its week
-- (docs/decisions/time-partitions.md). There are no foreign keys: whenever a partition came or went, they
-- would lock the tables they point to.
CREATE TABLE event (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  type text NOT NULL,
  -- NULL for what is about no card.
  card_id text COLLATE "C",
  body text NOT NULL,
  created_at timestamptz NOT NULL,
  -- NULL: every endpoint that wants the event's type. Otherwise only this one, or all but that one.
  only_endpoint_id text,
  except_endpoint_id text
) PARTITION BY RANGE (id);
CREATE INDEX event_newest ON event (partner_id, mode, id);
CREATE INDEX event_newest_of_card ON event (card_id, id);
CREATE INDEX event_newest_of_card_and_type ON event (card_id, type, id);
CREATE TABLE event_default PARTITION OF event DEFAULT;

-- How far an event got. This row changes, the event never does. The relay makes every attempt; the event's
-- workflow keeps the time until the next one, and is started with the result of an attempt or notified of it.
CREATE TABLE delivery (
  event_id text COLLATE "C" NOT NULL,
  -- Empty if no endpoint wants the event: then this is its only row.
  endpoint_id text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  status text NOT NULL CHECK (status IN ('pending', 'delivered', 'retrying', 'given_up', 'parked', 'no_endpoint')),
  attempt_count integer NOT NULL DEFAULT 0,
  -- Until then, a relay is taken to be sending it.
  lease_expires_at timestamptz NOT NULL DEFAULT '-infinity',
  next_attempt_at timestamptz,
  -- Attempts since the schedule began: with the event, or when it was last sent again.
  schedule_attempts integer NOT NULL DEFAULT 0,
  -- none: there is none. untold: it has yet to be started, or notified of how the event stands. told: it
  -- knows.
  workflow text NOT NULL DEFAULT 'none' CHECK (workflow IN ('none', 'untold', 'told')),
  -- The event's. It is here too because lists filter by status, by type, or by both, and one index finds them
  -- all.
  type text COLLATE "C" NOT NULL,
  -- Replayed events are sent after the endpoint's other events.
  replayed boolean NOT NULL DEFAULT false,
  PRIMARY KEY (event_id, endpoint_id)
) WITH (fillfactor = 80);
CREATE INDEX delivery_newest ON delivery (partner_id, mode, status, type, event_id);
CREATE INDEX delivery_waiting ON delivery (status, partner_id, mode, event_id)
  WHERE status IN ('retrying', 'given_up', 'parked', 'no_endpoint');
CREATE INDEX delivery_due ON delivery (next_attempt_at) WHERE status = 'retrying';
CREATE INDEX delivery_untold ON delivery (partner_id, mode, endpoint_id, event_id)
  WHERE workflow = 'untold' AND status <> 'pending';
-- What an endpoint gets when it is enabled, and gives up when it is deleted.
CREATE INDEX delivery_undelivered ON delivery (partner_id, mode, endpoint_id, status)
  WHERE status IN ('pending', 'retrying', 'parked');
-- What a sandbox clock makes due (docs/decisions/sandbox-clock.md): retries of an account, in the order of
-- their due times. There are few: only those of test mode.
CREATE INDEX delivery_due_by_clock ON delivery (partner_id, mode, next_attempt_at)
  WHERE status = 'retrying' AND mode = 'test';
-- The index has as many rows as events are waiting.
CREATE INDEX delivery_pending ON delivery (partner_id, mode, endpoint_id, replayed, event_id) WHERE status = 'pending';
-- What is parked, oldest first: its endpoint gets it once it is enabled, a few at a time
-- (docs/decisions/webhook-relay.md).
CREATE INDEX delivery_parked ON delivery (partner_id, mode, endpoint_id, event_id) WHERE status = 'parked';
-- What operators are shown of each endpoint: the oldest, and about how many.
CREATE INDEX delivery_given_up ON delivery (partner_id, mode, endpoint_id, event_id) WHERE status = 'given_up';

CREATE TABLE delivery_attempt (
  event_id text COLLATE "C" NOT NULL,
  endpoint_id text COLLATE "C" NOT NULL,
  number integer NOT NULL CHECK (number > 0),
  started_at timestamptz NOT NULL,
  duration_ms integer NOT NULL,
  delivered boolean NOT NULL,
  http_status smallint,
  -- Without a 2xx: a short code, and the first bytes of the receiver's response, for operators only. They are
  -- sealed, because the receiver may have sent the event back.
  error text,
  answer_start bytea,
  PRIMARY KEY (event_id, endpoint_id, number),
  CHECK (delivered = (error IS NULL))
) PARTITION BY RANGE (event_id);
CREATE TABLE delivery_attempt_default PARTITION OF delivery_attempt DEFAULT;

-- A partner's order to send events to an endpoint again (docs/decisions/webhook-relay.md). A worker puts a
-- few of them in line at a time, so the row says how far it has got.
CREATE TABLE webhook_replay (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL REFERENCES partner,
  mode text COLLATE "C" NOT NULL CHECK (mode IN ('test', 'live')),
  endpoint_id text COLLATE "C" NOT NULL,
  status text NOT NULL CHECK (status IN ('running', 'completed')),
  wanted text NOT NULL CHECK (wanted IN ('undelivered', 'given_up', 'all')),
  -- NULL for all types that the endpoint wants.
  event_types text[],
  -- Events after this one, which have not been looked at yet,
  after_event_id text COLLATE "C" NOT NULL,
  -- and below this id.
  before_event_id text COLLATE "C" NOT NULL,
  -- The events that it has put in line and that were not sent yet when it last looked.
  in_line text[] NOT NULL DEFAULT '{}',
  matched integer NOT NULL,
  sent integer NOT NULL DEFAULT 0,
  -- When it may put more in line.
  due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX webhook_replay_running ON webhook_replay (endpoint_id) WHERE status = 'running';
CREATE INDEX webhook_replay_due ON webhook_replay (due_at) WHERE status = 'running';
CREATE INDEX webhook_replay_of_endpoint ON webhook_replay (partner_id, mode, endpoint_id, id);

GRANT SELECT, INSERT, DELETE, UPDATE (url, status, disabled_reason, standard_headers, secret, previous_secret,
  previous_secret_expires_at, workflows_full_at, event_types, description,
  consecutive_failures, failing_since, last_success_at, last_failure_at, last_failure_http_status,
  last_failure_error, failing_told) ON webhook_endpoint TO card_issuing_app;
GRANT UPDATE (failing_owed) ON webhook_endpoint TO card_issuing_worker;
GRANT SELECT, INSERT, UPDATE (url, status, disabled_reason, standard_headers, secret, previous_secret,
  previous_secret_expires_at, workflows_full_at, event_types, description,
  consecutive_failures, failing_since, last_success_at, last_failure_at, last_failure_http_status,
  last_failure_error, failing_told) ON webhook_endpoint TO card_issuing_operator;
GRANT SELECT ON webhook_allowance TO card_issuing_app, card_issuing_operator;
GRANT INSERT, UPDATE ON webhook_allowance TO card_issuing_api;
GRANT SELECT, INSERT ON event TO card_issuing_app, card_issuing_operator;
GRANT SELECT, INSERT, UPDATE (endpoint_id, status, attempt_count, lease_expires_at, next_attempt_at,
  schedule_attempts, workflow, replayed) ON delivery TO card_issuing_app, card_issuing_operator;
-- Operators seal again what is sealed with another key.
GRANT SELECT ON delivery_attempt TO card_issuing_app;
GRANT INSERT ON delivery_attempt TO card_issuing_worker;
GRANT SELECT, UPDATE (answer_start) ON delivery_attempt TO card_issuing_operator;
GRANT SELECT, DELETE ON webhook_replay TO card_issuing_app;
GRANT INSERT ON webhook_replay TO card_issuing_api;
GRANT UPDATE (status, after_event_id, in_line, matched, sent, due_at) ON webhook_replay TO
  card_issuing_worker;
GRANT SELECT ON webhook_replay TO card_issuing_operator;
