-- Up Migration

CREATE FUNCTION id_time(at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
RETURN (SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
    ((floor(extract(epoch FROM at) * 1000)::bigint >> (5 * i)) & 31)::integer + 1, 1), '' ORDER BY i DESC)
  FROM generate_series(0, 9) i);

-- What operators did, by whom, and from where. Partitioned by year (docs/decisions/time-partitions.md). Nobody may drop
-- a partition.
CREATE TABLE audit_entry (
  id text COLLATE "C" PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  actor text NOT NULL,
  action text NOT NULL,
  subject text NOT NULL,
  detail jsonb NOT NULL,
  -- As the session and the server know it.
  operator text,
  os_user text,
  host text,
  database_login text
) PARTITION BY RANGE (id);
-- Operators look for everything about one thing, and for everything that one person did.
CREATE INDEX audit_entry_at ON audit_entry (at);
CREATE INDEX audit_entry_subject ON audit_entry (subject, at);
CREATE INDEX audit_entry_actor ON audit_entry (actor, at);
CREATE TABLE audit_entry_default PARTITION OF audit_entry DEFAULT;
DO $$
BEGIN
  EXECUTE format('CREATE TABLE audit_entry_first PARTITION OF audit_entry FOR VALUES FROM (MINVALUE) TO (%L)',
    'aud_' || id_time(date_trunc('year', now(), 'UTC') + interval '1 year'));
END $$;

-- Entries that are committed but not in the chain yet (docs/decisions/audit-chain.md).
CREATE TABLE audit_unchained (
  id text COLLATE "C" PRIMARY KEY,
  queued_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Each link's hash covers the link before it, so a change to an entry, or a missing or inserted one, is noticed.
CREATE TABLE audit_chain (
  seq bigint PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  -- SHA-256 of the entry's content.
  digest bytea NOT NULL,
  hash bytea NOT NULL,
  chained_at timestamptz NOT NULL
);
CREATE INDEX audit_chain_chained_at ON audit_chain (chained_at);

CREATE FUNCTION audit_row(entry_id text) RETURNS TABLE (id text, at timestamptz, actor text, action text, subject text,
  detail jsonb, operator text, os_user text, host text, database_login text, client_address text, content text)
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT e.*, jsonb_build_array(e.id, extract(epoch FROM e.at), e.actor, e.action, e.subject, e.detail, e.operator, e.os_user,
    e.host, e.database_login, e.client_address)::text
  FROM (
    SELECT a.id, a.at, a.actor, a.action, a.subject, a.detail, a.operator, a.os_user, a.host, a.database_login,
      NULL::text AS client_address
    FROM audit_entry a WHERE a.id = entry_id COLLATE "C"
    UNION ALL
    SELECT r.id, r.created_at, r.partner_id || '/' || r.api_key_id, 'card.reveal', r.card_id,
      jsonb_build_object('mode', r.mode, 'request_id', r.request_id), NULL, NULL, NULL, NULL, r.client_address
    FROM card_reveal r WHERE r.id = entry_id COLLATE "C"
    UNION ALL
    SELECT f.id, f.created_at, f.partner_id || '/' || f.api_key_id, 'card.reveal-refused', coalesce(f.card_id, f.partner_id),
      jsonb_build_object('mode', f.mode, 'request_id', f.request_id, 'reason', f.reason), NULL, NULL, NULL, NULL,
      f.client_address
    FROM refused_reveal f WHERE f.id = entry_id COLLATE "C"
  ) e;
END;

CREATE FUNCTION stamp_audit() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.database_login := session_user;
  NEW.operator := nullif(current_setting('card_issuing.operator', true), '');
  NEW.os_user := nullif(current_setting('card_issuing.os_user', true), '');
  NEW.host := nullif(current_setting('card_issuing.host', true), '');
  RETURN NEW;
END $$;
CREATE TRIGGER stamp BEFORE INSERT ON audit_entry FOR EACH ROW EXECUTE FUNCTION stamp_audit();

CREATE FUNCTION queue_for_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public.audit_unchained (id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER queue AFTER INSERT ON audit_entry FOR EACH ROW EXECUTE FUNCTION queue_for_chain();
CREATE TRIGGER queue AFTER INSERT ON card_reveal FOR EACH ROW EXECUTE FUNCTION queue_for_chain();
CREATE TRIGGER queue AFTER INSERT ON refused_reveal FOR EACH ROW EXECUTE FUNCTION queue_for_chain();

CREATE FUNCTION chain_audit(batch integer) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  head record;
  entry record;
  link_seq bigint;
  link_hash bytea;
  link_at timestamptz;
  taken integer := 0;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext('chain_audit')) THEN
    RETURN 0;
  END IF;
  SELECT seq, hash INTO head FROM public.audit_chain ORDER BY seq DESC LIMIT 1;
  link_seq := coalesce(head.seq, 0);
  link_hash := coalesce(head.hash, '');
  FOR entry IN
    SELECT q.id, sha256(convert_to(coalesce(r.content, ''), 'UTF8')) AS digest
    FROM (SELECT id FROM public.audit_unchained ORDER BY id LIMIT batch) q LEFT JOIN LATERAL public.audit_row(q.id) r ON true
    ORDER BY q.id
  LOOP
    taken := taken + 1;
    DELETE FROM public.audit_unchained WHERE id = entry.id;
    CONTINUE WHEN EXISTS (SELECT FROM public.audit_chain WHERE id = entry.id);
    link_seq := link_seq + 1;
    link_at := clock_timestamp();
    link_hash := sha256(link_hash || convert_to(concat_ws(' ', link_seq, entry.id, encode(entry.digest, 'hex'),
      (extract(epoch FROM link_at) * 1000000)::bigint), 'UTF8'));
    INSERT INTO public.audit_chain (seq, id, digest, hash, chained_at)
      VALUES (link_seq, entry.id, entry.digest, link_hash, link_at);
  END LOOP;
  RETURN taken;
END $$;

GRANT SELECT, INSERT ON audit_entry TO card_issuing_app, card_issuing_operator;
GRANT EXECUTE ON FUNCTION chain_audit TO card_issuing_app;
GRANT SELECT ON audit_unchained, audit_chain TO card_issuing_operator;
GRANT EXECUTE ON FUNCTION audit_row TO card_issuing_operator;
