-- Of the next `batch` deliveries after that of the event `after`, deletes those whose event is older than 30
-- days, unless they are still being sent or somebody has locked them. Returns the last event it looked at,
-- NULL if there was none.
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

GRANT EXECUTE ON FUNCTION prune_deliveries TO card_issuing_worker;
