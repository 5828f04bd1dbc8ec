-- Counts a purchase without an authorization, and a refund. Once a purchase is linked to its authorization, the authorization
-- counts it instead.
CREATE OR REPLACE FUNCTION count_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  cents bigint := CASE WHEN NEW.type = 'refund' THEN -NEW.amount_cents ELSE NEW.amount_cents END;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    cents := CASE WHEN NEW.authorization_id IS NULL THEN cents ELSE -cents END;
  END IF;
  PERFORM count_spent(NEW.card_id, NEW.merchant_category_code, NEW.created_at, substr(NEW.id, 5), cents, TG_OP = 'INSERT');
  RETURN NULL;
END $$;
