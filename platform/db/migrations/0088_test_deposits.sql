-- Up Migration

-- Test deposits (docs/decisions/test-deposits.md): rows like those of live mode, on a network of their own, whose payments come
-- from a sweep. They have no address on a chain, and no workflow.
-- The release before looks for these by a chain's network, or compares told_version in an index that has no row where it is NULL.
ALTER TABLE deposit
  -- squawk-ignore ban-drop-not-null
  ALTER COLUMN address_index DROP NOT NULL,
  -- squawk-ignore ban-drop-not-null
  ALTER COLUMN address_hash DROP NOT NULL,
  -- NULL: it has no workflow.
  -- squawk-ignore ban-drop-not-null
  ALTER COLUMN told_version DROP NOT NULL,
  -- What payment its partner asked for.
  ADD COLUMN test_payment text,
  -- When the sweep next does something with it, in the account's time: its payment arrives, or it expires.
  ADD COLUMN due_at timestamptz;
ALTER TABLE deposit DROP CONSTRAINT deposit_mode_check, DROP CONSTRAINT deposit_network_check;
ALTER TABLE deposit ADD CONSTRAINT deposit_of_mode CHECK (CASE mode
  WHEN 'live' THEN network IN ('mainnet', 'nile', 'shasta', 'private') AND address_index IS NOT NULL
    AND address_hash IS NOT NULL AND told_version IS NOT NULL AND test_payment IS NULL AND due_at IS NULL
  WHEN 'test' THEN network = 'test' AND address_index IS NULL AND address_hash IS NULL AND told_version IS NULL
    AND test_payment IS NOT NULL AND test_payment IN ('exact', 'short', 'over', 'late', 'none')
  ELSE false END) NOT VALID;
-- squawk-ignore require-concurrent-index-creation -- It has test deposits only, and there are none yet.
CREATE INDEX IF NOT EXISTS deposit_due ON deposit (partner_id, due_at, id) WHERE due_at IS NOT NULL;
-- What operators look at, however many test deposits there are. Where there are many deposits, build these before the upgrade with
-- CREATE INDEX CONCURRENTLY (docs/operating.md#upgrading).
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS deposit_newest_live ON deposit (id) WHERE mode = 'live';
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS deposit_newest_of_mode_and_status ON deposit (mode, status, id);

-- Pretend money for them. The API settles what needs a review, and an operator may.
INSERT INTO ledger.code (code, debit_kind, credit_kind, may_overdraw, may_hold, mode, posted_by) VALUES
  ('fund_test_usdt', 'faucet', 'prepaid', false, false, 'test',
    '{card_issuing_api,card_issuing_worker,card_issuing_operator}');

CREATE OR REPLACE FUNCTION ledger.check_deposit_credit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- deposit/<network>/<tx hash>/<log index>/<deposit>, or deposit/resolve/<version>/<deposit>
  part text[] := string_to_array(NEW.operation_id, '/');
BEGIN
  IF pg_has_role(session_user, current_user, 'MEMBER') THEN
    RETURN NULL;
  ELSIF part[2] = 'resolve' THEN
    PERFORM FROM public.deposit_resolution r JOIN public.deposit d ON d.id = r.deposit_id
      WHERE r.deposit_id = part[4] AND r.version::text = part[3] AND r.outcome = 'credited' AND r.credited_cents = NEW.amount
        AND d.partner_id = NEW.partner_id AND d.mode = NEW.mode AND r.xmin = pg_current_xact_id()::xid;
  ELSE
    PERFORM FROM public.deposit_payment p
      WHERE p.network = part[2] AND p.tx_hash = part[3] AND p.log_index::text = part[4] AND p.deposit_id = part[5]
        AND p.status = 'credited' AND p.value_micro_usdt = NEW.amount * 10000::numeric
        AND p.partner_id = NEW.partner_id AND p.mode = NEW.mode AND p.xmin = pg_current_xact_id()::xid;
  END IF;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'transfer % (%) has no payment or resolution of % cents in its transaction', NEW.id, NEW.code, NEW.amount
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER test_deposit_credit AFTER INSERT ON ledger.transfer DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.code = 'fund_test_usdt') EXECUTE FUNCTION ledger.check_deposit_credit();

-- The API settles what is in review of test deposits, and has no right to change what became of a live one. To lock a deposit, it
-- needs a column that it may change.
CREATE OR REPLACE FUNCTION settle_test_deposit(
  resolved text, decision text, credited bigint, why text, decided_by text
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public.deposit_resolution (deposit_id, version, outcome, credited_cents, reason, actor)
    SELECT d.id, d.version, decision, credited, why, decided_by FROM public.deposit d
    WHERE d.id = resolved AND d.mode = 'test';
  UPDATE public.deposit_payment p SET status = decision
    WHERE p.deposit_id = resolved AND p.mode = 'test' AND p.status = 'in_review';
  UPDATE public.deposit d SET credited_cents = d.credited_cents + credited,
      status = CASE WHEN d.credited_cents + credited > 0 THEN 'confirmed' ELSE 'returned' END,
      confirmed_at = coalesce(d.confirmed_at, CASE WHEN credited > 0
        THEN date_trunc('milliseconds', public.account_now(d.partner_id, d.mode)) END),
      review_since = NULL, version = d.version + 1, changed_at = public.account_now(d.partner_id, d.mode)
    WHERE d.id = resolved AND d.mode = 'test';
END $$;
GRANT EXECUTE ON FUNCTION settle_test_deposit TO card_issuing_api;
GRANT UPDATE (due_at) ON deposit TO card_issuing_app;
