-- Which tables had rows written to their default partition in the last two weeks, and since when it has rows
-- (docs/decisions/time-partitions.md). For the ledger's entries: whether this year has no partition of its
-- own.
CREATE OR REPLACE FUNCTION rows_without_partition() RETURNS TABLE (name text, since timestamptz) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
  SELECT 'event', (SELECT created_at FROM public.event_default ORDER BY id LIMIT 1)
  WHERE (SELECT created_at FROM public.event_default ORDER BY id DESC LIMIT 1) > now() - interval '2 weeks'
  UNION ALL
  SELECT 'delivery_attempt', (SELECT started_at FROM public.delivery_attempt_default ORDER BY event_id, number LIMIT 1)
  WHERE (SELECT started_at FROM public.delivery_attempt_default ORDER BY event_id DESC, number DESC LIMIT 1)
    > now() - interval '2 weeks'
  UNION ALL
  SELECT 'logged_request', now()
  WHERE (SELECT id FROM public.logged_request_default ORDER BY id DESC LIMIT 1) > 'req_' || public.id_time(now() - interval '1 day')
  UNION ALL
  SELECT 'audit_entry', (SELECT at FROM public.audit_entry_default ORDER BY id LIMIT 1)
  WHERE (SELECT at FROM public.audit_entry_default ORDER BY id DESC LIMIT 1) > now() - interval '2 weeks'
  UNION ALL
  (SELECT 'ledger.entry', booked_on::timestamp AT TIME ZONE 'UTC' FROM ledger.entry_default
  WHERE NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'ledger.entry'::regclass
    AND (now() AT TIME ZONE 'UTC')::date::text COLLATE "C" >= coalesce(public.partition_bound('FROM', inhrelid), '')
    AND (now() AT TIME ZONE 'UTC')::date::text COLLATE "C" < public.partition_bound('TO', inhrelid))
  LIMIT 1)
$$;

GRANT EXECUTE ON FUNCTION rows_without_partition TO card_issuing_app, card_issuing_operator;
