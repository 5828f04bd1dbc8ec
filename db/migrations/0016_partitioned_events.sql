-- Up Migration

-- What only grows is partitioned by time (docs/decisions/time-partitions.md). This migration carries over events and the
-- attempts to deliver them: nothing is rewritten, the table that was there becomes the first partition. It keeps both
-- tables locked while it reads them once.

-- The ten characters of an id that say its time (crypto/new-id.ts).
CREATE FUNCTION id_time(at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
RETURN (SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
    ((floor(extract(epoch FROM at) * 1000)::bigint >> (5 * i)) & 31)::integer + 1, 1), '' ORDER BY i DESC)
  FROM generate_series(0, 9) i);

-- A bound of a partition ('FROM', 'TO') as it was written; NULL of the default partition and for MINVALUE.
CREATE FUNCTION partition_bound(side text, partition oid) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
RETURN (SELECT substring(pg_get_expr(relpartbound, oid) FROM side || ' \(''([^'']*)''\)') FROM pg_class WHERE oid = partition)
  COLLATE "C";

-- Makes the next partition that is missing, of the first table that lacks one; returns its name, or NULL if none is missing
-- or another session is at it. Each call makes one, so that its transaction locks little. Nobody waits for it for longer
-- than its lock_timeout, once for each table; who calls it tries again. A period that already has rows in the default
-- partition gets none of its own: to move them would take a long lock.
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
    -- What each is partitioned by: an id, which begins with its prefix, or a day.
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
      -- NULL: it is not partitioned, or not yet.
      CONTINUE WHEN parent.made_until IS NULL OR period.first COLLATE "C" < parent.made_until;
      EXECUTE format('SELECT EXISTS (SELECT FROM %1$I.%2$I WHERE %3$I >= %4$L AND %3$I < %5$L)',
        parent.schema, parent.name || '_default', parent.key, period.first, period.last) INTO is_taken;
      CONTINUE WHEN is_taken;
      -- Like the default partition, which can have more indexes than the whole.
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

-- Deletes the deliveries of events that are older than 30 days (decisions.md, "Event"), but for those that are still being
-- sent, or that somebody has locked: of the next `batch` deliveries after the one of the event `after`. Returns the last
-- one it looked at; NULL if there was none.
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

-- Drops the oldest week of events, with the attempts to deliver them, if all of it is older than 30 days (decisions.md,
-- "Event") and its deliveries are gone. Returns the dropped partition's name; NULL if there is none to drop. Nobody waits
-- for it for longer than its lock_timeout, once for each table; who calls it tries again. What the default partitions have
-- is deleted by rows, a batch at a time.
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

-- An event is written with its delivery, its delivery is removed first, and the event goes with its week. Foreign keys
-- would have the tables they point to locked whenever a partition comes or goes.
LOCK TABLE event, delivery, delivery_attempt IN ACCESS EXCLUSIVE MODE;
ALTER TABLE delivery_attempt DROP CONSTRAINT delivery_attempt_event_id_fkey;
ALTER TABLE delivery DROP CONSTRAINT delivery_event_id_fkey;
ALTER TABLE event DROP CONSTRAINT event_card_id_partner_id_mode_fkey;
-- It served that key alone.
DROP INDEX event_of_card;
DROP TRIGGER queue_deliveries ON event;

-- Whatever was there is the first partition, up to the end of this week.
ALTER TABLE event RENAME TO event_first;
ALTER INDEX event_pkey RENAME TO event_first_pkey;
ALTER INDEX event_newest RENAME TO event_first_newest;
ALTER TABLE delivery_attempt RENAME TO delivery_attempt_first;
ALTER INDEX delivery_attempt_pkey RENAME TO delivery_attempt_first_pkey;
REVOKE ALL ON event_first, delivery_attempt_first FROM card_issuing_app, card_issuing_operator;

CREATE TABLE event (LIKE event_first INCLUDING ALL EXCLUDING INDEXES, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE INDEX event_newest ON event (partner_id, mode, id);
CREATE TABLE event_default PARTITION OF event DEFAULT;
CREATE TABLE delivery_attempt (LIKE delivery_attempt_first INCLUDING ALL EXCLUDING INDEXES, PRIMARY KEY (event_id, number))
  PARTITION BY RANGE (event_id);
CREATE TABLE delivery_attempt_default PARTITION OF delivery_attempt DEFAULT;

DO $$
DECLARE
  until text := 'evt_' || id_time(date_trunc('week', now(), 'UTC') + interval '1 week');
BEGIN
  -- Ids that a clock far ahead has made.
  WITH ahead AS (DELETE FROM event_first WHERE id >= until RETURNING *) INSERT INTO event SELECT * FROM ahead;
  WITH ahead AS (DELETE FROM delivery_attempt_first WHERE event_id >= until RETURNING *)
    INSERT INTO delivery_attempt SELECT * FROM ahead;
  EXECUTE format('ALTER TABLE event ATTACH PARTITION event_first FOR VALUES FROM (MINVALUE) TO (%L)', until);
  EXECUTE format('ALTER TABLE delivery_attempt ATTACH PARTITION delivery_attempt_first FOR VALUES FROM (MINVALUE) TO (%L)',
    until);
  WHILE make_partition() IS NOT NULL LOOP END LOOP;
END $$;

CREATE TRIGGER queue_deliveries AFTER INSERT ON event REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION queue_deliveries();

-- As they were, but only what is old can be removed, by the functions above.
GRANT SELECT, INSERT ON event TO card_issuing_app, card_issuing_operator;
GRANT SELECT, INSERT ON delivery_attempt TO card_issuing_app;
GRANT SELECT ON delivery_attempt TO card_issuing_operator;
GRANT EXECUTE ON FUNCTION make_partition, prune_deliveries, drop_old_events TO card_issuing_app;
