-- For an operation in test mode: locks the account's usage row (if the operation counts towards it), then the
-- card it is about, and returns everything it is decided on; no row if there is no such account. It is one
-- call because the account's other operations wait for every round trip under these locks. The locks have
-- statements of their own: a statement that waited for a lock doesn't see what was committed meanwhile, a
-- later one does.
CREATE OR REPLACE FUNCTION lock_test_card_terms(
  account text, idempotency_key text, about_card text, about_authorization text, counts boolean
) RETURNS TABLE (
  -- The claim with this key, and its response, sealed.
  claim_id text,
  fingerprint bytea,
  response_status smallint,
  response_body bytea,
  -- The card it is about, its balance and what is held of that; NULL if the account has no such card.
  card card,
  card_cents bigint,
  card_held_cents bigint,
  -- The authorization it is about; NULL if the account has no such authorization.
  authorized card_authorization,
  -- Its payment.
  payment payment,
  -- The prepaid balance. It is not locked, so it may change at any time.
  prepaid_cents bigint,
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
  IF about_authorization IS NOT NULL THEN
    SELECT z.card_id INTO about_card FROM card_authorization z
      WHERE z.id = about_authorization AND z.partner_id = account AND z.mode = 'test';
  END IF;
  IF about_card IS NOT NULL THEN
    PERFORM FROM card k WHERE k.id = about_card AND k.partner_id = account AND k.mode = 'test' FOR NO KEY UPDATE;
  END IF;
  RETURN QUERY
    SELECT c.id, c.fingerprint, c.response_status, c.response_body, k, coalesce(a.posted, 0), coalesce(a.held, 0), z, y,
      coalesce((SELECT b.posted FROM ledger.account b WHERE b.id = 'prepaid/test/' || account), 0),
      p.fee_plan, p.limits, u.open_cards,
      -- Another transaction may have counted for a day that began after this one did.
      CASE WHEN u.loaded_on >= (account_now(account, 'test') AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END
    FROM partner p
    JOIN account_usage u ON u.partner_id = p.id AND u.mode = 'test'
    LEFT JOIN card k ON k.id = about_card AND k.partner_id = account AND k.mode = 'test'
    LEFT JOIN ledger.account a ON a.card_id = k.id
    LEFT JOIN card_authorization z ON z.id = about_authorization AND z.card_id = k.id
    LEFT JOIN payment y ON y.mode = 'test' AND y.payment_id = z.id
    LEFT JOIN idempotency_claim c ON c.partner_id = account AND c.mode = 'test' AND c.key = idempotency_key
    WHERE p.id = account;
END $$;

GRANT EXECUTE ON FUNCTION lock_test_card_terms TO card_issuing_app;
