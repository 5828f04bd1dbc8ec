-- Notes what has to move between a live card's account at the card network and ours, so that it follows the ledger: what is
-- released from a blocked card, and what the prepaid balance paid or got instead of the card (docs/decisions/card-networks.md).
-- A ledger's transfer of a late transaction doesn't name its card, so it is deferred: by then the transaction has its row.
CREATE OR REPLACE FUNCTION note_true_up() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  true_up_id text := 'tru_' || public.id_time(clock_timestamp()) || substr(replace(gen_random_uuid()::text, '-', ''), 17);
BEGIN
  INSERT INTO public.true_up (id, direction, transfer_id, operation_id, partner_id, mode, card_id, amount_cents, token)
  SELECT true_up_id, CASE NEW.code WHEN 'late_debit' THEN 'to_card' ELSE 'from_card' END, NEW.id, NEW.operation_id,
    NEW.partner_id, NEW.mode, c.card_id, NEW.amount, true_up_id
  FROM (
    SELECT substr(NEW.debit_id, 6) AS card_id WHERE NEW.code = 'block_release'
    UNION ALL
    SELECT t.card_id FROM public.card_transaction t
    -- settle/<transaction>
    WHERE NEW.code <> 'block_release' AND t.id = substr(NEW.operation_id, 8)
      AND t.partner_id = NEW.partner_id AND t.mode = NEW.mode
  ) c;
  RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS truing_up ON ledger.transfer;
CREATE CONSTRAINT TRIGGER truing_up AFTER INSERT ON ledger.transfer DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.code IN ('block_release', 'late_debit', 'late_refund') AND NEW.mode = 'live') EXECUTE FUNCTION note_true_up();
