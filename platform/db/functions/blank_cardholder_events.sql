-- Takes a cardholder's names, e-mail address and metadata out of the bodies of the card's next `batch` events
-- after `after`, and deletes what receivers responded to them, since a response may quote the body. The rest
-- of a body stays, byte for byte: a quote inside a string has a backslash before it, so the patterns only
-- match fields. Returns the last event it looked at (NULL if there was none), how many it changed, and how
-- many of those had been sent to the partner.
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

GRANT EXECUTE ON FUNCTION blank_cardholder_events TO card_issuing_operator;
