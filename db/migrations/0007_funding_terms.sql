-- Up Migration

-- Locks what an account's fundings take turns by (the usage row, then the claim, then the card, if it is about one), and
-- reads everything a funding is decided on; no row where there is no such claim any more. One call, since every round
-- trip under these locks is one that the account's other fundings wait for. A statement of its own locks, and a later one
-- reads: what a wait let in is not in the snapshot of the statement that waited.
CREATE FUNCTION lock_funding_terms(claim text, funding text) RETURNS TABLE (
  partner_id text,
  mode text,
  -- As it was sealed.
  request bytea,
  answered boolean,
  -- The card it is about, where there was one before it, what is on it, and what pending top-ups would add.
  card_id text,
  card_cents bigint,
  arriving_cents numeric,
  fee_plan jsonb,
  limits jsonb,
  open_cards integer,
  loaded_today_cents bigint,
  -- Of the card or top-up this claim makes, where an earlier run has made it already.
  funding_status text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM FROM account_usage u JOIN idempotency_claim c ON c.partner_id = u.partner_id AND c.mode = u.mode
    WHERE c.id = claim FOR NO KEY UPDATE;
  PERFORM FROM card k WHERE k.id = (SELECT c.card_id FROM idempotency_claim c WHERE c.id = claim) FOR NO KEY UPDATE;
  RETURN QUERY
    SELECT c.partner_id, c.mode, c.request, c.response_status IS NOT NULL, c.card_id,
      coalesce((SELECT a.posted FROM ledger.account a WHERE a.card_id = c.card_id), 0),
      coalesce((SELECT sum(o.amount_cents) FROM topup o WHERE o.card_id = c.card_id AND o.status = 'pending'), 0),
      p.fee_plan, p.limits, u.open_cards,
      -- Another transaction can have counted a day that began since this one did.
      CASE WHEN u.loaded_on >= (now() AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END,
      coalesce((SELECT k.status FROM card k WHERE k.id = funding), (SELECT t.status FROM topup t WHERE t.id = funding))
    FROM idempotency_claim c
    JOIN partner p ON p.id = c.partner_id
    JOIN account_usage u ON u.partner_id = c.partner_id AND u.mode = c.mode
    WHERE c.id = claim;
END $$;
