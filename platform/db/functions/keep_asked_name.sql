-- Trigger of card: refuses to change the name while the network is asked to issue the card. Asked again, it
-- has to get the same name, and only the card's row has it.
CREATE OR REPLACE FUNCTION keep_asked_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the name on a card can''t be changed while the network is asked to issue it: wait until that is over'
    USING ERRCODE = 'check_violation', CONSTRAINT = 'card_name_asked';
END $$;

CREATE OR REPLACE TRIGGER card_name_asked BEFORE UPDATE OF cardholder_first_name, cardholder_last_name ON card
  FOR EACH ROW
  WHEN (OLD.status = 'funding_pending' AND NEW.status = 'funding_pending' AND
  (OLD.cardholder_first_name, OLD.cardholder_last_name)
  IS DISTINCT FROM (NEW.cardholder_first_name, NEW.cardholder_last_name))
  EXECUTE FUNCTION keep_asked_name();
