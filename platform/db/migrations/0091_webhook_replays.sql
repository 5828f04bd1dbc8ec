-- Up Migration

-- A partner's order to send events to an endpoint again (docs/decisions/webhook-relay.md). A worker puts a few of them in line at
-- a time, so the row says how far it has got.
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
GRANT SELECT, DELETE ON webhook_replay TO card_issuing_app;
GRANT SELECT ON webhook_replay TO card_issuing_operator;
GRANT INSERT ON webhook_replay TO card_issuing_api;
GRANT UPDATE (status, after_event_id, in_line, matched, sent, due_at) ON webhook_replay TO card_issuing_worker;

-- Replayed events are sent after the endpoint's other events.
ALTER TABLE delivery ADD COLUMN replayed boolean NOT NULL DEFAULT false;
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX delivery_pending;
-- The index has as many rows as events are waiting.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX delivery_pending ON delivery (partner_id, mode, endpoint_id, replayed, event_id) WHERE status = 'pending';
GRANT UPDATE (replayed) ON delivery TO card_issuing_app, card_issuing_operator;
