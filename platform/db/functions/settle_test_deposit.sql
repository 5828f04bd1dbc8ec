-- Writes the decision about what is in review of a test deposit: the resolution, its payments and its row, as
-- it is then. The caller holds the deposit, and posts the money. It runs with its owner's rights, because the
-- API may not change live deposits.
CREATE OR REPLACE FUNCTION settle_test_deposit(
  resolved text, decision text, credited bigint, status_then text, first_credited timestamptz, decided_by text
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public.deposit_resolution (deposit_id, version, outcome, credited_cents, reason, actor)
    SELECT d.id, d.version, decision, credited, 'the partner resolved it in test mode', decided_by
    FROM public.deposit d
    WHERE d.id = resolved AND d.mode = 'test';
  UPDATE public.deposit_payment p SET status = decision
    WHERE p.deposit_id = resolved AND p.mode = 'test' AND p.status = 'in_review';
  UPDATE public.deposit d SET credited_cents = d.credited_cents + credited, status = status_then,
      confirmed_at = first_credited,
      review_since = NULL, version = d.version + 1, changed_at = public.account_now(d.partner_id, d.mode)
    WHERE d.id = resolved AND d.mode = 'test';
END $$;

GRANT EXECUTE ON FUNCTION settle_test_deposit TO card_issuing_api;
