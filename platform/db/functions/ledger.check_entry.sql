-- Trigger of ledger.entry, at commit: the transfer of an entry moved money, and has its amount, its account
-- and its day.
CREATE OR REPLACE FUNCTION ledger.check_entry() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
  PERFORM FROM ledger.transfer t
    WHERE t.id = NEW.transfer_id AND t.phase IN ('single', 'post') AND t.amount = NEW.amount
      AND t.booked_on = NEW.booked_on
      AND NEW.account_id = CASE NEW.side WHEN 'debit' THEN t.debit_id ELSE t.credit_id END;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the % entry of transfer % does not match it', NEW.side, NEW.transfer_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS balanced ON ledger.entry;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON ledger.entry DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION ledger.check_entry();
