-- For a request of an issuer's about a card: locks the card, and returns everything that the request is
-- decided on; no row if there is no such card. It is one call, so that a decision takes one round trip under the
-- lock. The lock has a statement of its own: a statement that waited for a lock doesn't see what was committed
-- meanwhile, a later one does. lock_wait_ms is how long to wait for the lock; NULL for the session's limit.
CREATE OR REPLACE FUNCTION lock_payment_terms(
  about_card text, network_payment text, lock_wait_ms integer
) RETURNS TABLE (
  -- The card, its balance and what is held of that.
  card card,
  card_cents bigint,
  card_held_cents bigint,
  -- The payment that the request is part of, and its authorization.
  payment payment,
  authorized card_authorization,
  -- The prepaid balance. It is not locked, so it may change at any time.
  prepaid_cents bigint,
  fee_plan jsonb
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  IF lock_wait_ms IS NOT NULL THEN
    PERFORM set_config('lock_timeout', lock_wait_ms::text, true);
  END IF;
  PERFORM FROM card k WHERE k.id = about_card FOR NO KEY UPDATE;
  RETURN QUERY
    SELECT k, coalesce(a.posted, 0), coalesce(a.held, 0), y, z,
      coalesce((SELECT b.posted FROM ledger.account b WHERE b.id = 'prepaid/' || k.mode || '/' || k.partner_id), 0),
      p.fee_plan
    FROM card k
    JOIN partner p ON p.id = k.partner_id
    LEFT JOIN ledger.account a ON a.card_id = k.id
    LEFT JOIN payment y ON y.mode = k.mode AND y.payment_id = network_payment
    LEFT JOIN card_authorization z ON z.id = y.authorization_id
    WHERE k.id = about_card;
END $$;

GRANT EXECUTE ON FUNCTION lock_payment_terms TO card_issuing_app, card_issuing_operator;
