-- Notes what the card network has to take back of a live card's account, with the posting that released it
-- (docs/decisions/card-networks.md). It runs with the rights of the ledger's writer.
CREATE OR REPLACE FUNCTION note_money_return() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  id text := 'ret_' || public.id_time(clock_timestamp()) || substr(replace(gen_random_uuid()::text, '-', ''), 17);
BEGIN
  INSERT INTO public.true_up (id, direction, transfer_id, operation_id, partner_id, mode, card_id, amount_cents, token)
  VALUES (id, 'from_card', NEW.id, NEW.operation_id, NEW.partner_id, NEW.mode, substr(NEW.debit_id, 6), NEW.amount, id);
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER returned AFTER INSERT ON ledger.transfer FOR EACH ROW
  WHEN (NEW.code = 'block_release' AND NEW.mode = 'live') EXECUTE FUNCTION note_money_return();
