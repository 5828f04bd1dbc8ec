-- Counts what an authorization's change adds to its card's spending, in the interval in which it was created.
CREATE OR REPLACE FUNCTION count_authorization() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  cents bigint := counted_cents(NEW);
BEGIN
  IF TG_OP = 'UPDATE' THEN
    cents := cents - counted_cents(OLD);
  END IF;
  IF cents <> 0 THEN
    PERFORM count_spent(NEW.card_id, NEW.merchant_category_code, NEW.created_at, substr(NEW.id, 6), cents, TG_OP = 'INSERT');
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER card_authorization_counted
  AFTER INSERT OR UPDATE OF status, amount_cents, settled_cents, target_cents ON card_authorization
  FOR EACH ROW EXECUTE FUNCTION count_authorization();
