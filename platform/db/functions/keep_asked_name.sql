-- Trigger of card: refuses to change the name while the network is asked to issue the card. Asked again, it has to get
-- the same name, and only the card's row has it.
CREATE OR REPLACE FUNCTION keep_asked_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the name on a card can''t be changed while the network is asked to issue it: wait until that is over'
    USING ERRCODE = 'check_violation', CONSTRAINT = 'card_name_asked';
END $$;
