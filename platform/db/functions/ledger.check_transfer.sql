-- Trigger of ledger.transfer, at commit: a transfer that moved money has two entries, any other has none. The
-- primary key of ledger.entry allows one entry for each side and check_entry() compares them with the
-- transfer, so the two entries balance.
CREATE OR REPLACE FUNCTION ledger.check_transfer() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  expected integer := CASE WHEN NEW.phase IN ('single', 'post') THEN 2 ELSE 0 END;
  present integer;
BEGIN
  SELECT count(*) INTO present FROM ledger.entry e WHERE e.transfer_id = NEW.id AND e.booked_on = NEW.booked_on;
  IF present <> expected THEN
    RAISE EXCEPTION 'transfer % (%) has % entries, it needs %', NEW.id, NEW.phase, present, expected
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS balanced ON ledger.transfer;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON ledger.transfer DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION ledger.check_transfer();
