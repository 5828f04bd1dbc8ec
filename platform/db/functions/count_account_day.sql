-- Adds what a card spent or got back to its account's day (docs/decisions/overview.md): the transfers that a
-- statement counts as spent and refunded. Each session has rows of its own, so it waits for nobody.
CREATE OR REPLACE FUNCTION count_account_day() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  refunded bigint := CASE WHEN NEW.code = 'refund' THEN NEW.amount ELSE 0 END;
BEGIN
  INSERT INTO public.account_day AS d (partner_id, mode, day, session, spent_cents, refunded_cents)
  VALUES (NEW.partner_id, NEW.mode, (NEW.created_at AT TIME ZONE 'UTC')::date, pg_backend_pid(),
    NEW.amount - refunded, refunded)
  ON CONFLICT (partner_id, mode, day, session) DO UPDATE
    SET spent_cents = d.spent_cents + excluded.spent_cents, refunded_cents = d.refunded_cents + excluded.refunded_cents;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER counted_in_day AFTER INSERT ON ledger.transfer FOR EACH ROW
  WHEN (NEW.phase IN ('single', 'post') AND NEW.code IN ('purchase', 'authorization', 'refund'))
  EXECUTE FUNCTION count_account_day();
