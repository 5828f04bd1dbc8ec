-- Trigger of idempotency_claim: the status of the operation it stands for (docs/partners/operations.md), as
-- its response makes it. Without a key, and with a 400, which is not kept, it is no operation.
CREATE OR REPLACE FUNCTION note_answer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.key IS NULL OR NEW.response_status = 400 THEN
    NEW.operation_status := NULL;
  ELSIF NEW.response_status IS NULL OR NEW.response_status = 202 THEN
    NEW.operation_status := coalesce(NEW.operation_status, 'in_progress');
  ELSE
    NEW.operation_status := 'completed';
    NEW.completed_at := public.account_now(NEW.partner_id, NEW.mode);
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER idempotency_claim_answer BEFORE INSERT OR UPDATE OF response_status ON idempotency_claim
  FOR EACH ROW EXECUTE FUNCTION note_answer();
