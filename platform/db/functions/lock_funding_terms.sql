-- Locks the usage row of the claim's account, which a withdrawal doesn't change, the claim, then the card it
-- is about, and returns everything that its money is decided on; no row if there is no such claim. It is one
-- call because the account's other fundings wait for every round trip under these locks. The locks have
-- statements of their own: a statement that waited for a lock doesn't see what was committed meanwhile, a
-- later one does.
CREATE OR REPLACE FUNCTION lock_funding_terms(claim text) RETURNS TABLE (
  partner_id text,
  mode text,
  -- Sealed.
  request bytea,
  answered boolean,
  -- What it makes, and whether an earlier run has already made it and it is pending.
  resource_id text,
  is_pending boolean,
  -- If it is about a card that existed before it: the card, its balance, and what pending top-ups would add.
  card_id text,
  card card,
  card_cents bigint,
  arriving_cents numeric,
  -- The prepaid balance. It is not locked, so it may change at any time.
  prepaid_cents bigint,
  fee_plan jsonb,
  limits jsonb,
  open_cards integer,
  loaded_today_cents bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM FROM account_usage u JOIN idempotency_claim c ON c.partner_id = u.partner_id AND c.mode = u.mode
    WHERE c.id = claim AND c.operation <> 'withdraw_from_card' FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    PERFORM FROM idempotency_claim c WHERE c.id = claim FOR NO KEY UPDATE;
  END IF;
  PERFORM FROM card k JOIN idempotency_claim c ON c.card_id = k.id AND c.partner_id = k.partner_id AND c.mode = k.mode
    WHERE c.id = claim FOR NO KEY UPDATE OF k;
  RETURN QUERY
    SELECT c.partner_id, c.mode, c.request, c.response_status IS NOT NULL, c.resource_id,
      EXISTS (SELECT FROM card k WHERE k.claim_id = claim) OR EXISTS (SELECT FROM card_transfer t WHERE t.claim_id = claim),
      c.card_id, k,
      coalesce((SELECT a.posted FROM ledger.account a WHERE a.card_id = c.card_id), 0),
      coalesce((SELECT sum(o.amount_cents) FROM card_transfer o
        WHERE o.card_id = c.card_id AND o.direction = 'topup' AND o.status = 'pending'), 0),
      coalesce((SELECT b.posted FROM ledger.account b WHERE b.id = 'prepaid/' || c.mode || '/' || c.partner_id), 0),
      p.fee_plan, p.limits, u.open_cards,
      -- Another transaction may have counted for a day that began after this one did.
      CASE WHEN u.loaded_on >= (account_now(c.partner_id, c.mode) AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END
    FROM idempotency_claim c
    JOIN partner p ON p.id = c.partner_id
    JOIN account_usage u ON u.partner_id = c.partner_id AND u.mode = c.mode
    LEFT JOIN card k ON k.id = c.card_id AND k.partner_id = c.partner_id AND k.mode = c.mode
    WHERE c.id = claim;
END $$;

GRANT EXECUTE ON FUNCTION lock_funding_terms TO card_issuing_app;
