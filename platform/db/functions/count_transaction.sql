-- Counts a purchase without an authorization, and a refund. Once a purchase is linked to its authorization,
-- the authorization counts it instead.
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

CREATE OR REPLACE TRIGGER card_transaction_counted AFTER INSERT ON card_transaction
  FOR EACH ROW WHEN (NEW.type = 'refund' OR (NEW.type = 'purchase' AND NEW.authorization_id IS NULL))
  EXECUTE FUNCTION count_transaction();
-- A clearing that came before its authorization counts by itself until the two are linked.
CREATE OR REPLACE TRIGGER card_transaction_linked AFTER UPDATE OF authorization_id ON card_transaction
  FOR EACH ROW WHEN (NEW.type = 'purchase' AND (OLD.authorization_id IS NULL) <> (NEW.authorization_id IS NULL))
  EXECUTE FUNCTION count_transaction();
