-- Notes what the card network has to take back of a live card's account after a refund of a blocked card, which our ledger credits to
-- the prepaid balance (docs/decisions/card-networks.md). A ledger's transfer doesn't name its card, so it is deferred: by then the
-- transaction has the row of the refund, which does.
CREATE OR REPLACE FUNCTION note_refund_return() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
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
