-- Trigger of card and card_transfer: takes the end of what was pending, or that it is past its deadline,
-- over to the claim that asked for it. If the claim gets its response with the end, nothing is left to do.
CREATE OR REPLACE FUNCTION follow_operation() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NEW.claim_id IS NULL THEN
    UPDATE public.idempotency_claim SET operation_status = 'completed',
        completed_at = public.account_now(partner_id, mode)
      WHERE id = OLD.claim_id AND operation_status <> 'completed' AND response_status IS NOT NULL;
  ELSE
    UPDATE public.idempotency_claim
      SET operation_status = CASE WHEN NEW.overdue_since IS NULL THEN 'in_progress' ELSE 'awaiting_review' END
      WHERE id = NEW.claim_id AND operation_status <> 'completed';
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER card_operation AFTER UPDATE OF claim_id, overdue_since ON card FOR EACH ROW
  WHEN (OLD.claim_id IS NOT NULL
  AND (NEW.claim_id IS NULL OR (OLD.overdue_since IS NULL) <> (NEW.overdue_since IS NULL)))
  EXECUTE FUNCTION follow_operation();
CREATE OR REPLACE TRIGGER card_transfer_operation AFTER UPDATE OF claim_id, overdue_since ON card_transfer FOR EACH ROW
  WHEN (OLD.claim_id IS NOT NULL
  AND (NEW.claim_id IS NULL OR (OLD.overdue_since IS NULL) <> (NEW.overdue_since IS NULL)))
  EXECUTE FUNCTION follow_operation();
