-- Up Migration

ALTER TABLE card
  -- What the partner stores with the card: { key: text }.
  ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}',
  -- Whether it was changed before its creation had a response. card.updated is written with that response, because a
  -- card whose creation is refused never was.
  ADD COLUMN update_unannounced boolean NOT NULL DEFAULT false,
  -- When an operator erased the cardholder's data. Then nobody can store any again.
  ADD COLUMN cardholder_erased_at timestamptz,
  -- 50 keys of 40 characters with values of 500, four bytes each.
  ADD CONSTRAINT card_metadata_size
    CHECK (jsonb_typeof(metadata) = 'object' AND pg_column_size(metadata) <= 131072) NOT VALID;

GRANT UPDATE (metadata, update_unannounced) ON card TO card_issuing_app;
GRANT UPDATE (metadata, cardholder_erased_at) ON card TO card_issuing_operator;

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
    (SELECT count(*)::integer FROM changed JOIN public.delivery d ON d.event_id = changed.id WHERE d.attempt_count > 0)
$$;
