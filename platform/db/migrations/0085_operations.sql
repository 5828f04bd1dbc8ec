-- Up Migration

-- What a claim stands for is an operation (docs/decisions/operations-are-claims.md). What is there already is completed, except
-- for what the statements below find.
ALTER TABLE idempotency_claim
  -- in_progress, completed or awaiting_review. NULL: no operation, because it has no key, or a 400 as its response.
  ADD COLUMN IF NOT EXISTS operation_status text COLLATE "C" DEFAULT 'completed',
  -- When nothing was left to happen. NULL for what was completed before there was this column.
  ADD completed_at timestamptz,
  -- How often the card network was asked, if that took longer than the first time; what it said the last time, when that was,
  -- when it is asked next, and until when it may take.
  ADD network_asked integer NOT NULL DEFAULT 0,
  ADD network_last_answer text,
  ADD network_last_asked_at timestamptz,
  ADD network_next_ask_at timestamptz,
  ADD network_deadline timestamptz;
ALTER TABLE idempotency_claim ALTER operation_status DROP DEFAULT;
UPDATE idempotency_claim SET operation_status = NULL WHERE key IS NULL;
UPDATE idempotency_claim SET operation_status = 'in_progress' WHERE key IS NOT NULL AND response_status IS NULL;
UPDATE idempotency_claim c
  SET operation_status = CASE WHEN p.overdue_since IS NULL THEN 'in_progress' ELSE 'awaiting_review' END
  FROM (
    SELECT claim_id, overdue_since FROM card WHERE claim_id IS NOT NULL
    UNION ALL SELECT claim_id, overdue_since FROM topup WHERE claim_id IS NOT NULL
    UNION ALL SELECT claim_id, overdue_since FROM withdrawal WHERE claim_id IS NOT NULL
  ) p
  WHERE c.id = p.claim_id AND c.key IS NOT NULL;

-- GET /operations. Where there are many claims, build it before the upgrade (docs/operating.md#upgrading).
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS idempotency_claim_newest_of_status
  ON idempotency_claim (partner_id, mode, operation_status, id);

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
CREATE TRIGGER idempotency_claim_answer BEFORE INSERT OR UPDATE OF response_status ON idempotency_claim
  FOR EACH ROW EXECUTE FUNCTION note_answer();

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
CREATE TRIGGER card_operation AFTER UPDATE OF claim_id, overdue_since ON card FOR EACH ROW
  WHEN (OLD.claim_id IS NOT NULL
    AND (NEW.claim_id IS NULL OR (OLD.overdue_since IS NULL) <> (NEW.overdue_since IS NULL)))
  EXECUTE FUNCTION follow_operation();
CREATE TRIGGER topup_operation AFTER UPDATE OF claim_id, overdue_since ON topup FOR EACH ROW
  WHEN (OLD.claim_id IS NOT NULL
    AND (NEW.claim_id IS NULL OR (OLD.overdue_since IS NULL) <> (NEW.overdue_since IS NULL)))
  EXECUTE FUNCTION follow_operation();
CREATE TRIGGER withdrawal_operation AFTER UPDATE OF claim_id, overdue_since ON withdrawal FOR EACH ROW
  WHEN (OLD.claim_id IS NOT NULL
    AND (NEW.claim_id IS NULL OR (OLD.overdue_since IS NULL) <> (NEW.overdue_since IS NULL)))
  EXECUTE FUNCTION follow_operation();

GRANT UPDATE (network_asked, network_last_answer, network_last_asked_at, network_next_ask_at, network_deadline)
  ON idempotency_claim TO card_issuing_app;
