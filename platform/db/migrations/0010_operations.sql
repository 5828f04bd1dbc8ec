-- Up Migration

-- What one process measures of the whole database for all of them: the numbers of the metrics, and the check of the
-- ledger.
CREATE TABLE measurement (
  name text COLLATE "C" PRIMARY KEY,
  -- Whoever sets this to a later time does the next measurement.
  due_at timestamptz NOT NULL DEFAULT '-infinity',
  measured_at timestamptz,
  result jsonb,
  CHECK ((measured_at IS NULL) = (result IS NULL))
) WITH (fillfactor = 50);
INSERT INTO measurement (name) VALUES ('webhooks'), ('deposits'), ('attention'), ('ledger_check'), ('network_messages');
GRANT SELECT, UPDATE ON measurement TO card_issuing_app, card_issuing_operator;

-- Partitions by time (docs/decisions/time-partitions.md).
CREATE FUNCTION partition_bound(side text, partition oid) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
RETURN (SELECT substring(pg_get_expr(relpartbound, oid) FROM side || ' \(''([^'']*)''\)') FROM pg_class WHERE oid = partition)
  COLLATE "C";

CREATE FUNCTION make_partition() RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' SET timezone = 'UTC' AS $$
DECLARE
  parent record;
  period record;
  is_taken boolean;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext('make_partition')) THEN
    RETURN NULL;
  END IF;
  FOR parent IN
    SELECT t.*, (SELECT max(public.partition_bound('TO', i.inhrelid)) FROM pg_inherits i
        WHERE i.inhparent = format('%I.%I', t.schema, t.name)::regclass) AS made_until
    -- Each is partitioned by an id, which begins with its prefix, or by a day.
    FROM (VALUES ('public', 'event', 'id', 'evt_', 'week', 'IYYY"w"IW', interval '2 weeks'),
        ('public', 'delivery_attempt', 'event_id', 'evt_', 'week', 'IYYY"w"IW', '2 weeks'),
        ('public', 'audit_entry', 'id', 'aud_', 'year', 'YYYY', '3 months'),
        ('ledger', 'entry', 'booked_on', NULL, 'year', 'YYYY', '3 months'))
      t (schema, name, key, prefix, width, label, ahead)
  LOOP
    FOR period IN
      SELECT parent.name || '_' || to_char(s, parent.label) AS name,
        coalesce(parent.prefix || public.id_time(s), s::date::text) AS first,
        coalesce(parent.prefix || public.id_time(s + ('1 ' || parent.width)::interval),
          (s + ('1 ' || parent.width)::interval)::date::text) AS last
      FROM generate_series(date_trunc(parent.width, now()), now() + parent.ahead, ('1 ' || parent.width)::interval) s
      ORDER BY s
    LOOP
      CONTINUE WHEN period.first COLLATE "C" < parent.made_until;
      EXECUTE format('SELECT EXISTS (SELECT FROM %1$I.%2$I WHERE %3$I >= %4$L AND %3$I < %5$L)',
        parent.schema, parent.name || '_default', parent.key, period.first, period.last) INTO is_taken;
      CONTINUE WHEN is_taken;
      -- Like the default partition, which can have more indexes than the partitioned table.
      EXECUTE format('CREATE TABLE %1$I.%2$I (LIKE %1$I.%3$I INCLUDING ALL)',
        parent.schema, period.name, parent.name || '_default');
      IF parent.schema = 'ledger' THEN
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.%I
          FOR EACH STATEMENT EXECUTE FUNCTION ledger.deny_change()', period.name);
      END IF;
      EXECUTE format('ALTER TABLE %1$I.%2$I ATTACH PARTITION %1$I.%3$I FOR VALUES FROM (%4$L) TO (%5$L)',
        parent.schema, parent.name, period.name, period.first, period.last);
      RETURN period.name;
    END LOOP;
  END LOOP;
  RETURN NULL;
END $$;

CREATE FUNCTION drop_old_events() RETURNS text LANGUAGE plpgsql SECURITY DEFINER
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

CREATE FUNCTION rows_without_partition() RETURNS TABLE (name text, since timestamptz) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
  SELECT 'event', (SELECT created_at FROM public.event_default ORDER BY id LIMIT 1)
  WHERE (SELECT created_at FROM public.event_default ORDER BY id DESC LIMIT 1) > now() - interval '2 weeks'
  UNION ALL
  SELECT 'delivery_attempt', (SELECT started_at FROM public.delivery_attempt_default ORDER BY event_id, number LIMIT 1)
  WHERE (SELECT started_at FROM public.delivery_attempt_default ORDER BY event_id DESC, number DESC LIMIT 1)
    > now() - interval '2 weeks'
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

GRANT EXECUTE ON FUNCTION make_partition, drop_old_events TO card_issuing_worker;
GRANT EXECUTE ON FUNCTION rows_without_partition TO card_issuing_app, card_issuing_operator;

DO $$
BEGIN
  WHILE make_partition() IS NOT NULL LOOP END LOOP;
END $$;
