-- Up Migration

-- GET /transactions by type, of the account or of a card. Where there are many transactions, build these before the upgrade
-- with CREATE INDEX CONCURRENTLY (docs/operating.md#upgrading).
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS card_transaction_newest_of_type ON card_transaction (partner_id, mode, type, id);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS card_transaction_newest_of_card_and_type ON card_transaction (card_id, type, id);

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
