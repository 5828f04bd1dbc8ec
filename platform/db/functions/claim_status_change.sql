-- An operator's request to freeze, unfreeze or block a card: a claim without a key, which a worker works on
-- as on a partner's. It is all that an operator's login can claim, so it can ask for nothing that makes or
-- moves money on its own. The lease has ended, so that the workers' sweep starts the work.
CREATE OR REPLACE FUNCTION claim_status_change(claim text, about_card text, change text, request text)
RETURNS TABLE (partner_id text, mode text) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  IF change NOT IN ('freeze_card', 'unfreeze_card', 'block_card') OR claim !~ '^claim_[0-9a-z]{26}$'
    OR request !~ '^req_[0-9a-z]{26}$' THEN
    RAISE EXCEPTION 'this is no change of a card''s status' USING ERRCODE = 'check_violation';
  END IF;
  RETURN QUERY
    INSERT INTO public.idempotency_claim AS c
      (id, partner_id, mode, operation, card_id, fingerprint, request_id, lease_expires_at, by_operator)
    SELECT claim, k.partner_id, k.mode, change, k.id, sha256(convert_to(change || ' ' || k.id, 'UTF8')), request, now(), true
    FROM public.card k WHERE k.id = about_card
    RETURNING c.partner_id, c.mode;
END $$;

GRANT EXECUTE ON FUNCTION claim_status_change TO card_issuing_operator;
