-- Trigger of what operators change: their change commits only together with its entry in the audit log,
-- whatever they log in with (docs/decisions/audit-chain.md). The first argument is the column that the
-- entry's subject is in; the second, if there is one, is what the entry's detail calls the row's id. The
-- owner of the database can do without, as it can drop the trigger.
CREATE OR REPLACE FUNCTION require_audit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  subject_id text := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
  IF pg_has_role(session_user, current_user, 'MEMBER') THEN
    RETURN NULL;
  END IF;
  -- What another product replaces as the current one is in that one's entry.
  IF TG_TABLE_NAME = 'product' AND to_jsonb(NEW) = to_jsonb(OLD) || '{"is_current": false}' THEN
    SELECT code INTO subject_id FROM public.product WHERE is_current;
  END IF;
  PERFORM FROM public.audit_entry a
    WHERE a.subject = subject_id AND a.xmin = pg_current_xact_id()::xid
      AND (TG_NARGS = 1 OR a.detail ->> TG_ARGV[1] = to_jsonb(NEW) ->> 'id');
  IF NOT FOUND THEN
    RAISE EXCEPTION 'a change of % % needs an entry in the audit log, in the same transaction', TG_TABLE_NAME, subject_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;

DO $$
DECLARE
  audited record;
BEGIN
  FOR audited IN
    SELECT * FROM (VALUES
      ('balance_adjustment', 'INSERT', '''partner_id'', ''adjustmentId'''),
      ('adjustment_request', 'INSERT OR UPDATE', '''partner_id'', ''adjustmentId'''),
      ('partner', 'INSERT OR UPDATE', '''id'''),
      ('partner_product', 'INSERT', '''partner_id'''),
      ('product', 'INSERT OR UPDATE', '''code'''),
      ('api_key', 'INSERT OR UPDATE', '''id'''),
      ('workbench_session', 'INSERT', '''id'''),
      ('card', 'UPDATE OF decision', '''id'''),
      ('card_transfer', 'UPDATE OF decision', '''id'''),
      ('late_answer', 'UPDATE OF decision', '''id'''),
      ('payment_element', 'INSERT OR UPDATE', '''id'''),
      ('deposit', 'UPDATE', '''id'''),
      ('deposit_payment', 'UPDATE', '''deposit_id'''),
      ('deposit_resolution', 'INSERT', '''deposit_id''')) t (name, changes, arguments)
  LOOP
    EXECUTE format('DROP TRIGGER IF EXISTS audited ON %I', audited.name);
    -- Of API and worker, it costs two look-ups in a cache. A login that has left the operators since it connected is still asked.
    EXECUTE format('CREATE CONSTRAINT TRIGGER audited AFTER %s ON %I DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
      WHEN (pg_has_role(session_user, ''card_issuing_operator'', ''MEMBER'')
        OR NOT pg_has_role(session_user, ''card_issuing_app'', ''MEMBER''))
      EXECUTE FUNCTION require_audit(%s)', audited.changes, audited.name, audited.arguments);
  END LOOP;
END $$;
