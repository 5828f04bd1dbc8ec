-- Up Migration

-- Where an account's events go, in one mode. Secrets are sealed with the key ring.
CREATE TABLE webhook_endpoint (
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
  -- When the partner may send its whole allowance of events on request again.
  allowance_full_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When the account may start or notify its whole allowance of workflows again.
  workflows_full_at timestamptz NOT NULL DEFAULT '-infinity',
  PRIMARY KEY (partner_id, mode),
  CHECK ((status = 'disabled') = (disabled_reason IS NOT NULL)),
  CHECK ((previous_secret IS NULL) = (previous_secret_expires_at IS NULL))
);

-- What partners are notified of. The transaction that makes the change fixes the body. An event is written with its
-- delivery, the delivery is removed first, and the event goes with its week (docs/decisions/time-partitions.md). There
-- are no foreign keys: whenever a partition came or went, they would lock the tables they point to.
CREATE TABLE event (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  type text NOT NULL,
  -- NULL for what is about no card.
  card_id text COLLATE "C",
  body text NOT NULL,
  created_at timestamptz NOT NULL
) PARTITION BY RANGE (id);
CREATE INDEX event_newest ON event (partner_id, mode, id);
CREATE TABLE event_default PARTITION OF event DEFAULT;

-- How far an event got. This row changes, the event never does. The relay makes every attempt; the event's workflow
-- keeps the time until the next one, and is started with the result of an attempt or notified of it.
CREATE TABLE delivery (
  event_id text COLLATE "C" PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  status text NOT NULL CHECK (status IN ('pending', 'delivered', 'retrying', 'given_up', 'parked', 'no_endpoint')),
  attempt_count integer NOT NULL DEFAULT 0,
  -- Until then, a relay is taken to be sending it.
  lease_expires_at timestamptz NOT NULL DEFAULT '-infinity',
  next_attempt_at timestamptz,
  -- Attempts since the schedule began: with the event, or when it was last sent again.
  schedule_attempts integer NOT NULL DEFAULT 0,
  -- none: there is none. untold: it has yet to be started, or notified of how the event stands. told: it knows.
  workflow text NOT NULL DEFAULT 'none' CHECK (workflow IN ('none', 'untold', 'told')),
  -- The event's. It is here too because lists filter by status, by type, or by both, and one index finds them all.
  type text COLLATE "C" NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX delivery_newest ON delivery (partner_id, mode, status, type, event_id);
CREATE INDEX delivery_pending ON delivery (partner_id, mode, event_id) WHERE status = 'pending';
CREATE INDEX delivery_waiting ON delivery (status, partner_id, mode, event_id)
  WHERE status IN ('retrying', 'given_up', 'parked', 'no_endpoint');
CREATE INDEX delivery_untold ON delivery (partner_id, mode, event_id)
  WHERE workflow = 'untold' AND status <> 'pending';
CREATE INDEX delivery_due ON delivery (next_attempt_at) WHERE status = 'retrying';

CREATE TABLE delivery_attempt (
  event_id text COLLATE "C" NOT NULL,
  number integer NOT NULL CHECK (number > 0),
  started_at timestamptz NOT NULL,
  duration_ms integer NOT NULL,
  delivered boolean NOT NULL,
  http_status smallint,
  -- Without a 2xx: a short code, and the first bytes of the receiver's response, for operators only. They are sealed,
  -- because the receiver may have sent the event back.
  error text,
  answer_start bytea,
  PRIMARY KEY (event_id, number),
  CHECK (delivered = (error IS NULL))
) PARTITION BY RANGE (event_id);
CREATE TABLE delivery_attempt_default PARTITION OF delivery_attempt DEFAULT;

DO $$
DECLARE
  until text := 'evt_' || id_time(date_trunc('week', now(), 'UTC') + interval '1 week');
BEGIN
  EXECUTE format('CREATE TABLE event_first PARTITION OF event FOR VALUES FROM (MINVALUE) TO (%L)', until);
  EXECUTE format('CREATE TABLE delivery_attempt_first PARTITION OF delivery_attempt FOR VALUES FROM (MINVALUE) TO (%L)', until);
END $$;

CREATE FUNCTION queue_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO delivery (event_id, partner_id, mode, type, status)
    SELECT e.id, e.partner_id, e.mode, e.type, CASE WHEN w.partner_id IS NULL THEN 'no_endpoint' ELSE 'pending' END
    FROM written e LEFT JOIN webhook_endpoint w ON w.partner_id = e.partner_id AND w.mode = e.mode;
  RETURN NULL;
END $$;
CREATE TRIGGER queue_deliveries AFTER INSERT ON event REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION queue_deliveries();

CREATE FUNCTION prune_deliveries(after text, batch integer) RETURNS text LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
  WITH old AS MATERIALIZED (
    SELECT event_id FROM public.delivery
    WHERE event_id > after AND event_id < 'evt_' || public.id_time(now() - interval '30 days')
    ORDER BY event_id LIMIT batch
  ), ended AS MATERIALIZED (
    SELECT d.event_id FROM public.delivery d JOIN old ON old.event_id = d.event_id
    WHERE d.status NOT IN ('pending', 'retrying') FOR UPDATE OF d SKIP LOCKED
  ), pruned AS (
    DELETE FROM public.delivery WHERE event_id IN (SELECT event_id FROM ended)
  )
  SELECT max(event_id) FROM old
$$;

CREATE FUNCTION blank_cardholder_events(card text, after text, batch integer)
RETURNS TABLE (last_id text, blanked integer, sent integer) LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
  WITH page AS MATERIALIZED (
    SELECT id FROM public.event WHERE card_id = card AND id > after ORDER BY id LIMIT batch
  ), changed AS (
    UPDATE public.event e
    SET body = regexp_replace(e.body, '"(cardholder_first_name|cardholder_last_name|email)":"([^"\\]|\\.)*"', '"\1":null', 'g')
    FROM page
    WHERE e.id = page.id AND e.body ~ '"(cardholder_first_name|cardholder_last_name|email)":"'
    RETURNING e.id
  ), forgotten AS (
    UPDATE public.delivery_attempt a SET answer_start = NULL FROM changed
    WHERE a.event_id = changed.id AND a.answer_start IS NOT NULL
  )
  SELECT (SELECT max(id) FROM page), (SELECT count(*)::integer FROM changed),
    (SELECT count(*)::integer FROM changed JOIN public.delivery d ON d.event_id = changed.id WHERE d.attempt_count > 0)
$$;

GRANT SELECT, INSERT, DELETE, UPDATE (url, status, disabled_reason, standard_headers, secret, previous_secret,
  previous_secret_expires_at, allowance_full_at, workflows_full_at) ON webhook_endpoint TO card_issuing_app;
GRANT SELECT, INSERT ON event TO card_issuing_app, card_issuing_operator;
GRANT SELECT, INSERT, UPDATE (status, attempt_count, lease_expires_at, next_attempt_at, schedule_attempts, workflow)
  ON delivery TO card_issuing_app, card_issuing_operator;
GRANT SELECT ON delivery_attempt TO card_issuing_app, card_issuing_operator;
GRANT INSERT ON delivery_attempt TO card_issuing_worker;
GRANT EXECUTE ON FUNCTION prune_deliveries TO card_issuing_worker;

GRANT SELECT, INSERT, UPDATE (url, status, disabled_reason, standard_headers, secret, previous_secret,
  previous_secret_expires_at, allowance_full_at, workflows_full_at) ON webhook_endpoint TO card_issuing_operator;
-- To seal again what is sealed with another key.
GRANT UPDATE (answer_start) ON delivery_attempt TO card_issuing_operator;
GRANT EXECUTE ON FUNCTION blank_cardholder_events TO card_issuing_operator;
