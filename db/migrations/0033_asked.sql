-- Up Migration

-- What the network was asked for, besides what the row says: { bin, named } for a card, { networkCardId } for a top-up. Asked
-- again under the same token, it has to be the same request, whatever has changed in the meantime. Nobody may update it.
-- NULL: nobody is asked (test mode), or a process of the last release made the row.
ALTER TABLE card ADD asked jsonb;
ALTER TABLE topup ADD asked jsonb;
UPDATE card SET asked = jsonb_build_object('bin', p.bin,
    'named', coalesce(cardholder_first_name, cardholder_last_name) IS NOT NULL)
  FROM product p WHERE p.code = card.product_code AND card.status = 'funding_pending';
UPDATE topup SET asked = jsonb_build_object('networkCardId', c.network_card_id)
  FROM card c WHERE c.id = topup.card_id AND topup.status = 'pending';

-- The name itself is in the card's row alone, so it stays as it is until the network has decided.
CREATE FUNCTION keep_asked_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the name on a card can''t be changed while the network is asked to issue it: wait until that is over'
    USING ERRCODE = 'check_violation', CONSTRAINT = 'card_name_asked';
END $$;
CREATE TRIGGER card_name_asked BEFORE UPDATE OF cardholder_first_name, cardholder_last_name ON card
  FOR EACH ROW
  WHEN (OLD.status = 'funding_pending' AND NEW.status = 'funding_pending' AND
    (OLD.cardholder_first_name, OLD.cardholder_last_name)
      IS DISTINCT FROM (NEW.cardholder_first_name, NEW.cardholder_last_name))
  EXECUTE FUNCTION keep_asked_name();
