-- For what the network says about a card, and for what expires: locks the card, and returns everything that
-- is decided on; no row if there is no such card. It is one call, so that a decision takes one round trip
-- under the lock. The lock has a statement of its own: a statement that waited for a lock doesn't see what
-- was committed meanwhile, a later one does. lock_wait_ms is how long to wait for the lock; NULL for the
-- session's limit.
CREATE OR REPLACE FUNCTION lock_authorization_terms(
  about_card text, about_authorization text, network_authorization text, network_message text, lock_wait_ms integer
) RETURNS TABLE (
  -- The card, its balance and what is held of that.
  card card,
  card_cents bigint,
  card_held_cents bigint,
  -- The authorization, whichever of the two ids names it.
  authorized card_authorization,
  -- What became of the message, if it is a repeated one; and the transaction that has its id.
  message card_authorization_message,
  transaction_id text,
  -- What was cleared of the authorization before its request arrived, and whether one of the clearings was
  -- final.
  cleared_cents bigint,
  is_cleared_finally boolean,
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
    SELECT k, coalesce(a.posted, 0), coalesce(a.held, 0), z, m,
      (SELECT t.id FROM card_transaction t WHERE t.mode = k.mode AND t.network_transaction_id = network_message),
      coalesce(e.cents, 0), coalesce(e.is_final, false),
      coalesce((SELECT b.posted FROM ledger.account b WHERE b.id = 'prepaid/' || k.mode || '/' || k.partner_id), 0),
      p.fee_plan
    FROM card k
    JOIN partner p ON p.id = k.partner_id
    LEFT JOIN ledger.account a ON a.card_id = k.id
    LEFT JOIN card_authorization z
      ON z.id = coalesce(about_authorization, (SELECT n.id FROM card_authorization n
        WHERE n.mode = k.mode AND n.network_authorization_id = network_authorization))
    LEFT JOIN card_authorization_message m ON m.mode = k.mode AND m.message_id = network_message
    LEFT JOIN LATERAL (
      SELECT sum(c.amount_cents)::bigint AS cents, bool_or(c.is_final) AS is_final FROM card_authorization_message c
      WHERE c.mode = k.mode AND c.network_authorization_id = network_authorization AND c.card_id = k.id
        AND c.type = 'clearing' AND c.authorization_id IS NULL
    ) e ON true
    WHERE k.id = about_card;
END $$;

GRANT EXECUTE ON FUNCTION lock_authorization_terms TO card_issuing_app, card_issuing_operator;
