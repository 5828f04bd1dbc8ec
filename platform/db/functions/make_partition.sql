-- Makes one partition that is missing, and returns its name; NULL if none is missing, or if another session
-- is making one (docs/decisions/time-partitions.md). One at a time, so that a transaction locks little. Waits
-- for each table at most for its lock_timeout; the caller tries again. A period that already has rows in the
-- default partition gets no partition, because moving them would lock the table for long.
CREATE OR REPLACE FUNCTION make_partition() RETURNS text LANGUAGE plpgsql SECURITY DEFINER
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
        ('public', 'logged_request', 'id', 'req_', 'day', 'YYYYMMDD', '3 days'),
        ('public', 'audit_entry', 'id', 'aud_', 'year', 'YYYY', '3 months'),
        ('ledger', 'entry', 'booked_on', NULL, 'year', 'YYYY', '3 months'))
      t (schema, name, key, prefix, width, label, ahead)
  LOOP
    FOR period IN
      SELECT CASE WHEN parent.made_until IS NULL THEN parent.name || '_first'
          ELSE parent.name || '_' || to_char(s, parent.label) END AS name,
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
      EXECUTE format('ALTER TABLE %1$I.%2$I ATTACH PARTITION %1$I.%3$I FOR VALUES FROM (%4$s) TO (%5$L)',
        parent.schema, parent.name, period.name,
        CASE WHEN parent.made_until IS NULL THEN 'MINVALUE' ELSE quote_literal(period.first) END, period.last);
      RETURN period.name;
    END LOOP;
  END LOOP;
  RETURN NULL;
END $$;

GRANT EXECUTE ON FUNCTION make_partition TO card_issuing_worker;
