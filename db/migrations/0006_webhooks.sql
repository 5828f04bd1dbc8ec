-- Up Migration

-- Where an account's events go, in one mode. Secrets are sealed with the key ring.
CREATE TABLE webhook_endpoint (
  partner_id text COLLATE "C" NOT NULL REFERENCES partner,
  mode text COLLATE "C" NOT NULL CHECK (mode IN ('test', 'live')),
  url text NOT NULL,
  status text NOT NULL DEFAULT 'enabled' CHECK (status IN ('enabled', 'disabled')),
  disabled_reason text,
  -- Beside the document's own headers, those of Standard Webhooks.
  standard_headers boolean NOT NULL DEFAULT false,
  secret bytea NOT NULL,
  previous_secret bytea,
  previous_secret_expires_at timestamptz,
  -- When the partner's whole allowance of events sent on request is there again.
  allowance_full_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, mode),
  CHECK ((status = 'disabled') = (disabled_reason IS NOT NULL)),
  CHECK ((previous_secret IS NULL) = (previous_secret_expires_at IS NULL))
);

-- A ping is about no card.
ALTER TABLE event ALTER card_id DROP NOT NULL;
CREATE INDEX event_newest_of_type ON event (partner_id, mode, type, id DESC);

-- How far an event got, apart from its body: this row changes, the body never does.
CREATE TABLE delivery (
  event_id text COLLATE "C" PRIMARY KEY REFERENCES event ON DELETE CASCADE,
  partner_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  -- pending: the relay attempts it. retrying: its workflow does.
  status text NOT NULL CHECK (status IN ('pending', 'delivered', 'retrying', 'given_up', 'parked', 'no_endpoint')),
  attempt_count integer NOT NULL DEFAULT 0,
  -- Until when a relay may be taken to be at it.
  lease_expires_at timestamptz NOT NULL DEFAULT '-infinity',
  next_attempt_at timestamptz
) WITH (fillfactor = 80);
CREATE INDEX delivery_pending ON delivery (partner_id, mode, event_id) WHERE status = 'pending';
CREATE INDEX delivery_waiting ON delivery (status, partner_id, mode, event_id)
  WHERE status IN ('retrying', 'given_up', 'parked', 'no_endpoint');

CREATE TABLE delivery_attempt (
  event_id text COLLATE "C" NOT NULL REFERENCES delivery ON DELETE CASCADE,
  number integer NOT NULL CHECK (number > 0),
  started_at timestamptz NOT NULL,
  duration_ms integer NOT NULL,
  delivered boolean NOT NULL,
  http_status smallint,
  -- A short code where there was no 2xx, and the first bytes of what the receiver answered then, for operators alone:
  -- sealed, since it may have sent the event back.
  error text,
  answer_start bytea,
  PRIMARY KEY (event_id, number),
  CHECK (delivered = (error IS NULL))
);

INSERT INTO delivery (event_id, partner_id, mode, status) SELECT id, partner_id, mode, 'no_endpoint' FROM event;

-- Every event has its delivery from the transaction on that writes it: between a change and its news nothing is lost.
-- Events from before there was an endpoint are sent on request only.
CREATE FUNCTION queue_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO delivery (event_id, partner_id, mode, status)
    SELECT e.id, e.partner_id, e.mode, CASE WHEN w.partner_id IS NULL THEN 'no_endpoint' ELSE 'pending' END
    FROM written e LEFT JOIN webhook_endpoint w ON w.partner_id = e.partner_id AND w.mode = e.mode;
  RETURN NULL;
END $$;
CREATE TRIGGER queue_deliveries AFTER INSERT ON event REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION queue_deliveries();

GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_endpoint, delivery TO card_issuing_app;
GRANT SELECT, INSERT ON delivery_attempt TO card_issuing_app;
-- Events are pruned after 30 days.
GRANT DELETE ON event, delivery_attempt TO card_issuing_app;
