-- Up Migration

-- An operator's login changes nothing of these without an entry in the audit log (docs/decisions/audit-chain.md).
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
      ('card', 'UPDATE OF decision, network_card_id', '''id'''),
      ('topup', 'UPDATE OF decision', '''id'''),
      ('withdrawal', 'UPDATE OF decision', '''id'''),
      ('late_answer', 'UPDATE OF decision', '''id'''),
      ('deposit', 'UPDATE', '''id'''),
      ('deposit_payment', 'UPDATE', '''deposit_id'''),
      ('deposit_resolution', 'INSERT', '''deposit_id''')) t (name, changes, arguments)
  LOOP
    -- Of API and worker, it costs two look-ups in a cache. A login that has left the operators since it connected is still asked.
    EXECUTE format('CREATE CONSTRAINT TRIGGER audited AFTER %s ON %I DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
      WHEN (pg_has_role(session_user, ''card_issuing_operator'', ''MEMBER'')
        OR NOT pg_has_role(session_user, ''card_issuing_app'', ''MEMBER''))
      EXECUTE FUNCTION require_audit(%s)', audited.changes, audited.name, audited.arguments);
  END LOOP;
END $$;

-- NULL in rows from before.
ALTER TABLE balance_adjustment ADD login text;
CREATE OR REPLACE FUNCTION stamp_adjustment() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.login := session_user;
  RETURN NEW;
END $$;
CREATE TRIGGER stamp BEFORE INSERT ON balance_adjustment FOR EACH ROW EXECUTE FUNCTION stamp_adjustment();

-- Whoever approves a request has another login than who made it, not only another name (docs/decisions/two-persons.md). What was
-- approved before stays, and can't be changed anyway.
ALTER TABLE adjustment_request ADD CONSTRAINT adjustment_request_two_logins
  CHECK (status <> 'approved' OR decided_login <> requested_login) NOT VALID;

-- The operator's login may post adjustments, and every login late refunds: neither without the row that they are for.
CREATE OR REPLACE FUNCTION ledger.check_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- adjust/<adjustment>, or settle/<transaction>
  row_id text := split_part(NEW.operation_id, '/', 2);
BEGIN
  IF pg_has_role(session_user, current_user, 'MEMBER') THEN
    RETURN NULL;
  ELSIF NEW.code = 'late_refund' THEN
    PERFORM FROM public.card_transaction t
      WHERE t.id = row_id AND t.type = 'refund' AND t.charged_to <> 'card'
        AND coalesce(t.partner_balance_cents, t.amount_cents) = NEW.amount
        AND t.partner_id = NEW.partner_id AND t.mode = NEW.mode AND t.xmin = pg_current_xact_id()::xid;
  ELSE
    PERFORM FROM public.balance_adjustment a
      WHERE a.id = row_id AND a.amount_cents = CASE NEW.code WHEN 'adjustment_credit' THEN NEW.amount ELSE -NEW.amount END
        AND a.partner_id = NEW.partner_id AND a.mode = NEW.mode AND a.xmin = pg_current_xact_id()::xid;
  END IF;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'transfer % (%) has no row of % cents in its transaction', NEW.id, NEW.code, NEW.amount
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER has_row AFTER INSERT ON ledger.transfer DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.code IN ('adjustment_credit', 'adjustment_debit', 'late_refund')) EXECUTE FUNCTION ledger.check_row();
