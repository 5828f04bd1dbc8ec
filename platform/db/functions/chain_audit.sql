-- Adds the next committed entries to the audit chain, at most `batch`, and returns how many
-- (docs/decisions/audit-chain.md). One session does this at a time; any other returns at once. An entry that
-- was removed before it got here still gets its link, so that it is missed.
CREATE OR REPLACE FUNCTION chain_audit(batch integer) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
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

GRANT EXECUTE ON FUNCTION chain_audit TO card_issuing_app;
