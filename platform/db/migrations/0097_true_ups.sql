-- Up Migration

-- What the card network has to move so that a card's account there has what our ledger says: until now returns, from the card's account,
-- and now also covers, to it, of what the prepaid balance paid for the card (docs/decisions/card-networks.md).
-- The triggers come first, because a posting locks the ledger's transfers before this table.
DROP TRIGGER refund_returned ON ledger.transfer;
DROP FUNCTION note_refund_return();
-- squawk-ignore renaming-table -- the release before uses the view of the old name, below
ALTER TABLE money_return RENAME TO true_up;
ALTER TABLE true_up ADD COLUMN direction text COLLATE "C" NOT NULL DEFAULT 'from_card';
-- What is there is a return; from now on each row says what it is.
ALTER TABLE true_up ALTER COLUMN direction DROP DEFAULT;
ALTER TABLE true_up ADD CONSTRAINT true_up_direction_check CHECK (direction IN ('from_card', 'to_card')) NOT VALID;
-- A refusal may be for now only: then it stays pending, with its reason.
ALTER TABLE true_up DROP CONSTRAINT money_return_check;
ALTER TABLE true_up ADD CONSTRAINT true_up_reason_check
  CHECK (CASE status WHEN 'pending' THEN true WHEN 'refused' THEN reason IS NOT NULL ELSE reason IS NULL END) NOT VALID;
ALTER INDEX money_return_due RENAME TO true_up_due;
ALTER INDEX money_return_waiting RENAME TO true_up_waiting;
ALTER INDEX money_return_newest RENAME TO true_up_newest;
ALTER INDEX money_return_of_card RENAME TO true_up_of_card;

-- For the release before, which would take a cover for a return.
CREATE VIEW money_return AS
  SELECT id, transfer_id, operation_id, partner_id, mode, card_id, amount_cents, token, status, reason, attempts, retry_after,
    created_at, ended_at
  FROM true_up WHERE direction = 'from_card';
GRANT SELECT, UPDATE (status, reason, attempts, retry_after, ended_at) ON money_return TO card_issuing_app;
GRANT SELECT, UPDATE (token, status, reason, retry_after, ended_at) ON money_return TO card_issuing_operator;

CREATE OR REPLACE FUNCTION note_money_return() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  id text := 'ret_' || public.id_time(clock_timestamp()) || substr(replace(gen_random_uuid()::text, '-', ''), 17);
BEGIN
  INSERT INTO public.true_up (id, direction, transfer_id, operation_id, partner_id, mode, card_id, amount_cents, token)
  VALUES (id, 'from_card', NEW.id, NEW.operation_id, NEW.partner_id, NEW.mode, substr(NEW.debit_id, 6), NEW.amount, id);
  RETURN NULL;
END $$;

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
CREATE CONSTRAINT TRIGGER late_truing_up AFTER INSERT ON ledger.transfer DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.code IN ('late_debit', 'late_refund') AND NEW.mode = 'live') EXECUTE FUNCTION note_late_true_up();
