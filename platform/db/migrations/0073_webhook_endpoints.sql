-- Up Migration

-- Up to five endpoints for an account, each with its own deliveries (docs/decisions/webhook-relay.md). The table is small.
ALTER TABLE webhook_endpoint
  ADD COLUMN id text COLLATE "C",
  -- The types of events it wants; NULL for all.
  ADD COLUMN event_types text[],
  ADD COLUMN description text,
  -- How its attempts went, counted as they are recorded.
  ADD COLUMN consecutive_failures integer NOT NULL DEFAULT 0,
  ADD COLUMN failing_since timestamptz,
  ADD COLUMN last_success_at timestamptz,
  ADD COLUMN last_failure_at timestamptz,
  ADD COLUMN last_failure_http_status smallint,
  ADD COLUMN last_failure_error text,
  -- Whether the event webhook_endpoint.failing was written since the last success.
  ADD COLUMN failing_told boolean NOT NULL DEFAULT false;
UPDATE webhook_endpoint
  SET id = 'we_' || id_time(created_at) || substr(md5(partner_id || '/' || mode || random()::text), 1, 16);
-- The release before writes no id.
ALTER TABLE webhook_endpoint
  ALTER COLUMN id SET DEFAULT 'we_' || id_time(now()) || substr(md5(random()::text || random()::text), 1, 16),
  -- squawk-ignore adding-not-nullable-field
  ALTER COLUMN id SET NOT NULL,
  DROP CONSTRAINT webhook_endpoint_pkey,
  -- squawk-ignore adding-serial-primary-key-field, constraint-missing-not-valid
  ADD PRIMARY KEY (id);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX webhook_endpoint_of_account ON webhook_endpoint (partner_id, mode, id);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX webhook_endpoint_to_tell ON webhook_endpoint (id) WHERE consecutive_failures >= 10 AND NOT failing_told;

-- NULL: every endpoint that wants the event's type. Otherwise only this one, or all but that one.
ALTER TABLE event ADD COLUMN only_endpoint_id text, ADD COLUMN except_endpoint_id text;

-- One row for each event and endpoint; an event that no endpoint wants has one row with an empty endpoint_id.
ALTER TABLE delivery
  ADD COLUMN endpoint_id text COLLATE "C" NOT NULL DEFAULT '',
  -- Whether its workflow has the event's id alone: it began before there were several endpoints.
  ADD COLUMN workflow_of_event boolean NOT NULL DEFAULT false;
ALTER TABLE delivery_attempt ADD COLUMN endpoint_id text COLLATE "C" NOT NULL DEFAULT '';

-- What is not delivered yet gets its endpoint here. 0083 fills in what was delivered, which nobody changes meanwhile.
-- An account that has deleted its endpoint gets the id of one that does not exist; what was parked for it is given up.
CREATE TEMPORARY TABLE waiting ON COMMIT DROP AS
  SELECT d.event_id, d.status, w.id, coalesce(w.id, 'we_' || substr(d.partner_id, 5)) AS endpoint_id FROM delivery d
  LEFT JOIN webhook_endpoint w ON w.partner_id = d.partner_id AND w.mode = d.mode
  WHERE d.status IN ('pending', 'retrying', 'given_up', 'parked');
UPDATE delivery_attempt a SET endpoint_id = w.endpoint_id FROM waiting w WHERE a.event_id = w.event_id;
UPDATE delivery d SET endpoint_id = w.endpoint_id, workflow_of_event = d.workflow <> 'none',
  status = CASE WHEN w.id IS NULL AND d.status = 'parked' THEN 'given_up' ELSE d.status END
FROM waiting w WHERE d.event_id = w.event_id;

-- Their indexes are built while nobody writes events: seconds for ten million of them. An index can't be built before its
-- column is there.
ALTER TABLE delivery
  DROP CONSTRAINT delivery_pkey,
  -- squawk-ignore adding-serial-primary-key-field, constraint-missing-not-valid
  ADD PRIMARY KEY (event_id, endpoint_id);
ALTER TABLE delivery_attempt
  DROP CONSTRAINT delivery_attempt_pkey,
  -- squawk-ignore adding-serial-primary-key-field, constraint-missing-not-valid
  ADD PRIMARY KEY (event_id, endpoint_id, number);
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX delivery_pending;
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX delivery_pending ON delivery (partner_id, mode, endpoint_id, event_id) WHERE status = 'pending';
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX delivery_untold;
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX delivery_untold ON delivery (partner_id, mode, endpoint_id, event_id)
  WHERE workflow = 'untold' AND status <> 'pending';
-- What an endpoint gets when it is enabled, and gives up when it is deleted.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX delivery_undelivered ON delivery (partner_id, mode, endpoint_id, status)
  WHERE status IN ('pending', 'retrying', 'parked');

CREATE OR REPLACE FUNCTION queue_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO delivery (event_id, endpoint_id, partner_id, mode, type, status)
    SELECT e.id, coalesce(w.id, ''), e.partner_id, e.mode, e.type,
      CASE WHEN w.id IS NULL THEN 'no_endpoint' ELSE 'pending' END
    FROM written e LEFT JOIN webhook_endpoint w ON w.partner_id = e.partner_id AND w.mode = e.mode
      AND CASE WHEN e.only_endpoint_id IS NOT NULL THEN w.id = e.only_endpoint_id
        ELSE (w.event_types IS NULL OR e.type = ANY (w.event_types)) AND w.id IS DISTINCT FROM e.except_endpoint_id END;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION prune_deliveries(after text, batch integer) RETURNS text LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
  WITH old AS MATERIALIZED (
    SELECT DISTINCT event_id FROM public.delivery
    WHERE event_id > after AND event_id < 'evt_' || public.id_time(now() - interval '30 days')
    ORDER BY event_id LIMIT batch
  ), ended AS MATERIALIZED (
    SELECT d.event_id, d.endpoint_id FROM public.delivery d JOIN old ON old.event_id = d.event_id
    WHERE d.status NOT IN ('pending', 'retrying') FOR UPDATE OF d SKIP LOCKED
  ), pruned AS (
    DELETE FROM public.delivery WHERE (event_id, endpoint_id) IN (SELECT event_id, endpoint_id FROM ended)
  )
  SELECT max(event_id) FROM old
$$;

CREATE OR REPLACE FUNCTION blank_cardholder_events(card text, after text, batch integer)
RETURNS TABLE (last_id text, blanked integer, sent integer) LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
  WITH page AS MATERIALIZED (
    SELECT id FROM public.event WHERE card_id = card AND id > after ORDER BY id LIMIT batch
  ), changed AS (
    -- The metadata first: one of its keys may be called as one of the fields.
    UPDATE public.event e
    SET body = regexp_replace(
      regexp_replace(e.body, '"metadata":\{(?:"[^"\\]*(?:\\.[^"\\]*)*":"[^"\\]*(?:\\.[^"\\]*)*",?)*\}', '"metadata":{}', 'g'),
      '"(cardholder_first_name|cardholder_last_name|email)":"([^"\\]|\\.)*"', '"\1":null', 'g')
    FROM page
    WHERE e.id = page.id
      AND (e.body ~ '"(cardholder_first_name|cardholder_last_name|email)":"' OR strpos(e.body, '"metadata":{"') > 0)
    RETURNING e.id
  ), forgotten AS (
    UPDATE public.delivery_attempt a SET answer_start = NULL FROM changed
    WHERE a.event_id = changed.id AND a.answer_start IS NOT NULL
  )
  SELECT (SELECT max(id) FROM page), (SELECT count(*)::integer FROM changed),
    (SELECT count(*)::integer FROM changed
     WHERE EXISTS (SELECT FROM public.delivery d WHERE d.event_id = changed.id AND d.attempt_count > 0))
$$;

GRANT UPDATE (event_types, description, consecutive_failures, failing_since, last_success_at, last_failure_at,
  last_failure_http_status, last_failure_error, failing_told) ON webhook_endpoint
  TO card_issuing_app, card_issuing_operator;
GRANT UPDATE (endpoint_id) ON delivery TO card_issuing_app, card_issuing_operator;
