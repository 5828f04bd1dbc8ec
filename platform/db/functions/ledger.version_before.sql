-- The number of the last entry of a tracked account's chain that was made before a time; 0 if there is none.
-- Entries of an account are made one after the other, under its lock, so their times ascend. There is no
-- index on them: this looks at about as many entries as the chain's length has binary digits. Which ones
-- depends on the time alone, not on the chain's length. So the answer for a time that has passed stays the
-- same, even if a clock was once set back.
CREATE OR REPLACE FUNCTION ledger.version_before(account text, before timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
-- Never planned as a scan of a table that was small at the time.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
  newest bigint := (SELECT a.version FROM ledger.account a WHERE a.id = account);
  found bigint := 0;
  step bigint := 1;
BEGIN
  WHILE step * 2 <= newest LOOP
    step := step * 2;
  END LOOP;
  WHILE step > 0 LOOP
    IF found + step <= newest AND EXISTS (
      SELECT FROM ledger.entry e JOIN ledger.transfer t ON t.id = e.transfer_id
      WHERE e.account_id = account AND e.account_version = found + step AND e.account_version IS NOT NULL
        AND t.created_at < before) THEN
      found := found + step;
    END IF;
    step := step / 2;
  END LOOP;
  RETURN found;
END $$;

GRANT EXECUTE ON FUNCTION ledger.version_before TO card_issuing_app, card_issuing_operator;
