-- Up Migration

-- What test mode is asked for is one transaction, in which the key is claimed and answered. A claim without an answer is
-- left from the workflows that did it before; nothing has been done under it.
DELETE FROM idempotency_claim WHERE mode = 'test' AND response_status IS NULL;

-- Locks what a test-mode operation takes turns by (the usage row, if it counts something; then the card it is about), and
-- reads everything it is decided on; no row where there is no such account. One call, since every round trip under these
-- locks is one that the account's other operations wait for. A statement of its own locks, and a later one reads: what a
-- wait let in is not in the snapshot of the statement that waited.
CREATE FUNCTION lock_test_terms(account text, idempotency_key text, about_card text, counts boolean) RETURNS TABLE (
  -- What lies under the key, with its answer as it was sealed.
  claim_id text,
  fingerprint bytea,
  response_status smallint,
  response_body bytea,
  -- The card it is about, and what is on it; NULL where the account has no such card.
  card card,
  card_cents bigint,
  fee_plan jsonb,
  limits jsonb,
  open_cards integer,
  loaded_today_cents bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  IF counts THEN
    PERFORM FROM account_usage u WHERE u.partner_id = account AND u.mode = 'test' FOR NO KEY UPDATE;
  END IF;
  IF about_card IS NOT NULL THEN
    PERFORM FROM card k WHERE k.id = about_card AND k.partner_id = account AND k.mode = 'test' FOR NO KEY UPDATE;
  END IF;
  RETURN QUERY
    SELECT c.id, c.fingerprint, c.response_status, c.response_body, k,
      coalesce((SELECT a.posted FROM ledger.account a WHERE a.card_id = about_card), 0),
      p.fee_plan, p.limits, u.open_cards,
      -- Another transaction can have counted a day that began since this one did.
      CASE WHEN u.loaded_on >= (now() AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END
    FROM partner p
    JOIN account_usage u ON u.partner_id = p.id AND u.mode = 'test'
    LEFT JOIN card k ON k.id = about_card AND k.partner_id = account AND k.mode = 'test'
    LEFT JOIN idempotency_claim c ON c.partner_id = account AND c.mode = 'test' AND c.key = idempotency_key
    WHERE p.id = account;
END $$;

-- The UTC day whose loaded cents a card's funding and a top-up were counted towards. created_at is the time of the id,
-- which can be the day before's.
ALTER TABLE card ADD counted_on date;
ALTER TABLE topup ADD counted_on date;
UPDATE card SET counted_on = (created_at AT TIME ZONE 'UTC')::date WHERE status = 'funding_pending';
UPDATE topup SET counted_on = (created_at AT TIME ZONE 'UTC')::date WHERE status = 'pending';
ALTER TABLE card ALTER counted_on SET DEFAULT (now() AT TIME ZONE 'UTC')::date;
ALTER TABLE topup ALTER counted_on SET DEFAULT (now() AT TIME ZONE 'UTC')::date;

-- Transfers of an account are made one after the other, under its lock; a transaction may have begun long before.
ALTER TABLE ledger.transfer ALTER created_at SET DEFAULT clock_timestamp();
