-- Up Migration

-- A refund of a blocked live card is credited to the prepaid balance, but the card network credits the card's account there. So it has
-- to be taken back, like what a block releases.
CREATE FUNCTION note_refund_return() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  return_id text := 'ret_' || public.id_time(clock_timestamp()) || substr(replace(gen_random_uuid()::text, '-', ''), 17);
BEGIN
  INSERT INTO public.money_return (id, transfer_id, operation_id, partner_id, mode, card_id, amount_cents, token)
  SELECT return_id, NEW.id, NEW.operation_id, NEW.partner_id, NEW.mode, t.card_id, NEW.amount, return_id
  FROM public.card_transaction t
  -- settle/<transaction>
  WHERE t.id = substr(NEW.operation_id, 8) AND t.partner_id = NEW.partner_id AND t.mode = NEW.mode;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER refund_returned AFTER INSERT ON ledger.transfer DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.code = 'late_refund' AND NEW.mode = 'live') EXECUTE FUNCTION note_refund_return();
