-- Up Migration

-- Events that the card network posted: kept before they are answered, and read by a worker (docs/decisions/card-networks.md).
CREATE TABLE network_event (
  id text COLLATE "C" PRIMARY KEY,
  network text COLLATE "C" NOT NULL,
  -- The network's id, the same whenever it sends the event again.
  event_id text COLLATE "C" NOT NULL,
  -- What the network's adapter picked of it, sealed.
  body bytea NOT NULL,
  size_bytes integer NOT NULL,
  status text COLLATE "C" NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'done', 'dismissed')),
  -- Why the last attempt did not end it.
  reason text COLLATE "C" CHECK (reason IN ('network_unavailable', 'not_readable', 'not_taken')),
  attempts integer NOT NULL DEFAULT 0,
  retry_after timestamptz NOT NULL DEFAULT '-infinity',
  created_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  CHECK ((status = 'waiting') = (ended_at IS NULL))
);
CREATE UNIQUE INDEX network_event_once ON network_event (network, event_id);
CREATE INDEX network_event_due ON network_event (network, retry_after, id) INCLUDE (size_bytes, created_at)
  WHERE status = 'waiting';
CREATE INDEX network_event_newest ON network_event (status, id);
CREATE INDEX network_event_ended ON network_event (ended_at) WHERE status <> 'waiting';

GRANT SELECT, INSERT, DELETE, UPDATE (body, status, reason, attempts, retry_after, ended_at) ON network_event
  TO card_issuing_app;
GRANT SELECT, UPDATE (body, status, retry_after, ended_at) ON network_event TO card_issuing_operator;

-- The second one has been measured by nobody so far, for want of its row.
INSERT INTO measurement (name) VALUES ('network_events'), ('authorizations') ON CONFLICT DO NOTHING;
