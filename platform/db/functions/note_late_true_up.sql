-- Notes how a live card's account at the card network follows what the prepaid balance paid or got instead of
-- the card: a late debit is covered, a late refund is returned (docs/decisions/card-networks.md). A ledger's
-- transfer doesn't name its card, so it is deferred: by then the transaction has its row, which does.
CREATE OR REPLACE FUNCTION note_late_true_up() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  is_cover boolean := NEW.code = 'late_debit';
  true_up_id text := CASE WHEN is_cover THEN 'cov_' ELSE 'ret_' END || public.id_time(clock_timestamp())
    || substr(replace(gen_random_uuid()::text, '-', ''), 17);
BEGIN
  INSERT INTO public.true_up (id, direction, transfer_id, operation_id, partner_id, mode, card_id, amount_cents, token)
  SELECT true_up_id, CASE WHEN is_cover THEN 'to_card' ELSE 'from_card' END, NEW.id, NEW.operation_id, NEW.partner_id,
    NEW.mode, t.card_id, NEW.amount, true_up_id
  FROM public.card_transaction t
  -- settle/<transaction>
  WHERE t.id = substr(NEW.operation_id, 8) AND t.partner_id = NEW.partner_id AND t.mode = NEW.mode;
  RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS late_truing_up ON ledger.transfer;
CREATE CONSTRAINT TRIGGER late_truing_up AFTER INSERT ON ledger.transfer DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.code IN ('late_debit', 'late_refund') AND NEW.mode = 'live') EXECUTE FUNCTION note_late_true_up();
