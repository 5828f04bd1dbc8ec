-- Up Migration

-- What a request is going to make has its id from the moment its key is claimed: whoever runs the claim makes the same
-- card, top-up or deposit. NULL if it makes nothing.
ALTER TABLE idempotency_claim ADD resource_id text COLLATE "C";

-- The claim whose work is under way. It is NULL again when that is over, so a claim that is pruned has nothing to clear, and
-- the indexes hold what is pending alone.
ALTER TABLE card ADD claim_id text COLLATE "C";
ALTER TABLE topup ADD claim_id text COLLATE "C";

UPDATE idempotency_claim
  SET resource_id = CASE operation WHEN 'create_card' THEN 'card' ELSE 'topup' END || substr(id, 6)
  WHERE operation IN ('create_card', 'top_up_card') AND response_status IS NULL;
UPDATE card SET claim_id = c.id FROM idempotency_claim c
  WHERE card.status = 'funding_pending' AND c.id = 'claim' || substr(card.id, 5);
UPDATE topup SET claim_id = c.id FROM idempotency_claim c
  WHERE topup.status = 'pending' AND c.id = 'claim' || substr(topup.id, 6);
UPDATE idempotency_claim c SET resource_id = card.id FROM card WHERE card.claim_id = c.id;
UPDATE idempotency_claim c SET resource_id = topup.id FROM topup WHERE topup.claim_id = c.id;
UPDATE card SET status_change_claim_id = NULL WHERE status_change_claim_id IS NOT NULL
  AND NOT EXISTS (SELECT FROM idempotency_claim c WHERE c.id = card.status_change_claim_id);

CREATE UNIQUE INDEX card_claim ON card (claim_id) WHERE claim_id IS NOT NULL;
CREATE UNIQUE INDEX topup_claim ON topup (claim_id) WHERE claim_id IS NOT NULL;
CREATE UNIQUE INDEX card_status_change_claim ON card (status_change_claim_id) WHERE status_change_claim_id IS NOT NULL;
ALTER TABLE card
  ADD FOREIGN KEY (claim_id) REFERENCES idempotency_claim ON DELETE SET NULL,
  ADD FOREIGN KEY (status_change_claim_id) REFERENCES idempotency_claim ON DELETE SET NULL;
ALTER TABLE topup ADD FOREIGN KEY (claim_id) REFERENCES idempotency_claim ON DELETE SET NULL;
GRANT UPDATE (claim_id) ON card, topup TO card_issuing_app;

-- As 0007 has it, but what the claim makes is in the claim.
DROP FUNCTION lock_funding_terms (text, text);
CREATE FUNCTION lock_funding_terms(claim text) RETURNS TABLE (
  partner_id text,
  mode text,
  -- As it was sealed.
  request bytea,
  answered boolean,
  -- What it makes, and whether an earlier run has made it already and it is pending.
  resource_id text,
  is_pending boolean,
  -- The card it is about, where there was one before it, what is on it, and what pending top-ups would add.
  card_id text,
  card_cents bigint,
  arriving_cents numeric,
  fee_plan jsonb,
  limits jsonb,
  open_cards integer,
  loaded_today_cents bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM FROM account_usage u JOIN idempotency_claim c ON c.partner_id = u.partner_id AND c.mode = u.mode
    WHERE c.id = claim FOR NO KEY UPDATE;
  PERFORM FROM card k WHERE k.id = (SELECT c.card_id FROM idempotency_claim c WHERE c.id = claim) FOR NO KEY UPDATE;
  RETURN QUERY
    SELECT c.partner_id, c.mode, c.request, c.response_status IS NOT NULL, c.resource_id,
      EXISTS (SELECT FROM card k WHERE k.claim_id = claim) OR EXISTS (SELECT FROM topup t WHERE t.claim_id = claim),
      c.card_id,
      coalesce((SELECT a.posted FROM ledger.account a WHERE a.card_id = c.card_id), 0),
      coalesce((SELECT sum(o.amount_cents) FROM topup o WHERE o.card_id = c.card_id AND o.status = 'pending'), 0),
      p.fee_plan, p.limits, u.open_cards,
      -- Another transaction can have counted a day that began since this one did.
      CASE WHEN u.loaded_on >= (now() AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END
    FROM idempotency_claim c
    JOIN partner p ON p.id = c.partner_id
    JOIN account_usage u ON u.partner_id = c.partner_id AND u.mode = c.mode
    WHERE c.id = claim;
END $$;
GRANT EXECUTE ON FUNCTION lock_funding_terms (text) TO card_issuing_app;
