-- Trigger of ledger.transfer, at commit: a fund_usdt, or a fund_test_usdt, needs what it is for, written by
-- the same transaction. That is the credited payment of the exact amount, or an operator's resolution. The
-- owner is exempt, since it could also drop the trigger.
CREATE OR REPLACE FUNCTION ledger.check_deposit_credit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- deposit/<network>/<tx hash>/<log index>/<deposit>, or deposit/resolve/<version>/<deposit>
  part text[] := string_to_array(NEW.operation_id, '/');
BEGIN
  IF pg_has_role(session_user, current_user, 'MEMBER') THEN
    RETURN NULL;
  ELSIF part[2] = 'resolve' THEN
    PERFORM FROM public.deposit_resolution r JOIN public.deposit d ON d.id = r.deposit_id
      WHERE r.deposit_id = part[4] AND r.version::text = part[3] AND r.outcome = 'credited' AND r.credited_cents = NEW.amount
        AND d.partner_id = NEW.partner_id AND d.mode = NEW.mode AND r.xmin = pg_current_xact_id()::xid;
  ELSE
    PERFORM FROM public.deposit_payment p
      WHERE p.network = part[2] AND p.tx_hash = part[3] AND p.log_index::text = part[4] AND p.deposit_id = part[5]
        AND p.status = 'credited' AND p.value_micro_usdt = NEW.amount * 10000::numeric
        AND p.partner_id = NEW.partner_id AND p.mode = NEW.mode AND p.xmin = pg_current_xact_id()::xid;
  END IF;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'transfer % (%) has no payment or resolution of % cents in its transaction', NEW.id, NEW.code, NEW.amount
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS deposit_credit ON ledger.transfer;
CREATE CONSTRAINT TRIGGER deposit_credit AFTER INSERT ON ledger.transfer DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.code = 'fund_usdt') EXECUTE FUNCTION ledger.check_deposit_credit();
DROP TRIGGER IF EXISTS test_deposit_credit ON ledger.transfer;
CREATE CONSTRAINT TRIGGER test_deposit_credit AFTER INSERT ON ledger.transfer DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.code = 'fund_test_usdt') EXECUTE FUNCTION ledger.check_deposit_credit();
