-- Trigger of balance_adjustment: an adjustment above the limit needs a request that was approved
-- (docs/decisions/two-persons.md).
CREATE OR REPLACE FUNCTION require_approval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM public.adjustment_limit WHERE abs(NEW.amount_cents) > limit_cents) AND NOT EXISTS (
    SELECT FROM public.adjustment_request r
    WHERE r.id = NEW.id AND r.status = 'approved' AND r.partner_id = NEW.partner_id AND r.mode = NEW.mode
      AND r.amount_cents = NEW.amount_cents) THEN
    RAISE EXCEPTION 'an adjustment of % cents needs an approved request', NEW.amount_cents
      USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER require_approval BEFORE INSERT ON balance_adjustment FOR EACH ROW EXECUTE FUNCTION require_approval();
