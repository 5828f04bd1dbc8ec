-- Drops the oldest week of events, with the attempts to deliver them, if all of it is older than 30 days and
-- none of its events has a delivery left (docs/decisions/time-partitions.md). Returns the week's name, NULL
-- if there is none to drop. Waits for each table at most for its lock_timeout; the caller tries again. Old
-- rows of the default partitions are deleted, at most 500 in one call.
CREATE OR REPLACE FUNCTION drop_old_events() RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  kept_from CONSTANT text := 'evt_' || public.id_time(now() - interval '30 days');
  period text;
BEGIN
  WITH old AS MATERIALIZED (
    SELECT e.id FROM public.event_default e
    WHERE e.id < kept_from AND NOT EXISTS (SELECT FROM public.delivery d WHERE d.event_id = e.id)
    ORDER BY e.id LIMIT 500
  ), attempts AS (
    DELETE FROM public.delivery_attempt_default WHERE event_id IN (SELECT id FROM old)
  )
  DELETE FROM public.event_default WHERE id IN (SELECT id FROM old);

  SELECT substr(c.relname, 7) INTO period FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    CROSS JOIN LATERAL (SELECT coalesce(public.partition_bound('FROM', c.oid), '') AS first,
      public.partition_bound('TO', c.oid) AS last) bound
  WHERE i.inhparent = 'public.event'::regclass AND last <= kept_from
    AND NOT EXISTS (SELECT FROM public.delivery d WHERE d.event_id >= first AND d.event_id < last)
  ORDER BY last LIMIT 1;
  IF FOUND THEN
    EXECUTE format('DROP TABLE public.%I, public.%I', 'delivery_attempt_' || period, 'event_' || period);
  END IF;
  RETURN period;
END $$;

GRANT EXECUTE ON FUNCTION drop_old_events TO card_issuing_worker;
