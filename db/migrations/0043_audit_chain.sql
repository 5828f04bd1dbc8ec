-- Up Migration

-- Who made a change, as the session and the server know it, and where a reveal was asked for from
-- (docs/decisions/audit-chain.md).
ALTER TABLE audit_entry
  ADD operator text,
  ADD os_user text,
  ADD host text,
  ADD database_login text;
ALTER TABLE card_reveal ADD client_address text;

-- An attempt to reveal a card's number that was refused. It does not count towards the limit.
CREATE TABLE refused_reveal (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  -- As it was asked for, if it has the form of a card's id.
  card_id text COLLATE "C",
  api_key_id text NOT NULL,
  request_id text NOT NULL,
  client_address text NOT NULL,
  reason text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX refused_reveal_recent ON refused_reveal (partner_id, mode, created_at);
CREATE INDEX refused_reveal_of_card ON refused_reveal (card_id, created_at);

-- Entries that are committed but not in the chain yet.
CREATE TABLE audit_unchained (
  id text COLLATE "C" PRIMARY KEY,
  queued_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Each link's hash covers the one before it, so no entry can be changed, removed or put in between unnoticed.
CREATE TABLE audit_chain (
  seq bigint PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  -- SHA-256 of the entry's content.
  digest bytea NOT NULL,
  hash bytea NOT NULL,
  chained_at timestamptz NOT NULL
);
CREATE INDEX audit_chain_chained_at ON audit_chain (chained_at);

-- An entry of the audit log: an operator's change, a partner's reveal, or one that was refused. `content` is what the chain
-- protects. It may never change for an entry that exists, so a later column needs a content of its own.
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

-- The login can't be made up, whatever a statement says. The rest is what the operator's command line sends as it connects.
CREATE FUNCTION stamp_audit() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.database_login := session_user;
  NEW.operator := nullif(current_setting('card_issuing.operator', true), '');
  NEW.os_user := nullif(current_setting('card_issuing.os_user', true), '');
  NEW.host := nullif(current_setting('card_issuing.host', true), '');
  RETURN NEW;
END $$;
CREATE TRIGGER stamp BEFORE INSERT ON audit_entry FOR EACH ROW EXECUTE FUNCTION stamp_audit();

-- Whatever commits an entry commits its place in the queue, so the chain misses none, however late it commits.
CREATE FUNCTION queue_for_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public.audit_unchained (id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER queue AFTER INSERT ON audit_entry FOR EACH ROW EXECUTE FUNCTION queue_for_chain();
CREATE TRIGGER queue AFTER INSERT ON card_reveal FOR EACH ROW EXECUTE FUNCTION queue_for_chain();
CREATE TRIGGER queue AFTER INSERT ON refused_reveal FOR EACH ROW EXECUTE FUNCTION queue_for_chain();

-- Adds the next committed entries to the chain, at most `batch`; returns how many. Only one session does so at a time, and
-- the others go on without waiting. An entry that was removed in the meantime gets its link too, so that it is missed.
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

REVOKE ALL ON FUNCTION audit_row, stamp_audit, queue_for_chain, chain_audit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION chain_audit TO card_issuing_app;
GRANT SELECT, INSERT ON refused_reveal TO card_issuing_app;
GRANT EXECUTE ON FUNCTION audit_row TO card_issuing_operator;
GRANT SELECT ON audit_chain, audit_unchained, refused_reveal TO card_issuing_operator;
