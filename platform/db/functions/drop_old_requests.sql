-- Drops the oldest day of the log of requests, if all of it is older than 7 days (docs/decisions/time-partitions.md).
-- Returns the day's name, NULL if there is none to drop. Waits for the table at most for its lock_timeout;
-- the caller tries again. Old rows of the default partition are deleted.
CREATE OR REPLACE FUNCTION drop_old_requests() RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  kept_from CONSTANT text := 'req_' || public.id_time(now() - interval '7 days');
  day text;
BEGIN
  DELETE FROM public.logged_request_default WHERE id < kept_from;
  SELECT c.relname INTO day FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = 'public.logged_request'::regclass AND public.partition_bound('TO', c.oid) <= kept_from
  ORDER BY public.partition_bound('TO', c.oid) LIMIT 1;
  IF FOUND THEN
    EXECUTE format('DROP TABLE public.%I', day);
  END IF;
  RETURN day;
END $$;

GRANT EXECUTE ON FUNCTION drop_old_requests TO card_issuing_worker;
