-- Trigger of transfers that credit a balance because of a row, other than deposits: the row has to be written
-- in the same transaction, with this account, mode and amount. So a login that may post the code can't make
-- money with it alone. The owner of the database can do without, as in tests.
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

DROP TRIGGER IF EXISTS has_row ON ledger.transfer;
CREATE CONSTRAINT TRIGGER has_row AFTER INSERT ON ledger.transfer DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.code IN ('adjustment_credit', 'adjustment_debit', 'late_refund')) EXECUTE FUNCTION ledger.check_row();
