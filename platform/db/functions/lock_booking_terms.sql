-- What payments of any cards are booked on: a row for each that is asked about, in their order. It holds the
-- clocks of test mode, locks the cards in the order of their ids, and then reads, in one call, because others
-- wait for every round trip under these locks. The locks have statements of their own: a statement that
-- waited for a lock doesn't see what was committed meanwhile, a later one does.
-- asked: [{ card_id, payment_id, partner_id, mode, type, message_id, elements, refunded_id }], of which
--   partner_id, mode: whose the card has to be; NULL if the network names it
--   type: of the message; NULL if nothing is decided, so that spending limits do not matter
--   elements: the network's ids of what may be booked
-- locks: if not, what is under way may differ for a moment
-- lock_wait_ms: how long to wait for a lock; NULL for the session's limit
CREATE OR REPLACE FUNCTION lock_booking_terms(
  asked jsonb, asked_at timestamptz, locks boolean, lock_wait_ms integer
) RETURNS TABLE (
  -- The card, its balance and what is held of that; NULL if there is no such card.
  card card,
  card_cents bigint,
  card_held_cents bigint,
  -- The prepaid balance. It is not locked, so it may change at any time.
  prepaid_cents bigint,
  fee_plan jsonb,
  account_controls jsonb,
  spending jsonb,
  clock jsonb,
  payment jsonb,
  authorized jsonb,
  -- By the network's ids of elements: what people have said that they mean, and their transactions.
  hand_made jsonb,
  booked jsonb,
  -- What the simulated network has said under the message's id, and what became of it.
  said jsonb,
  answer jsonb,
  -- Of a refund, what read_refund_terms() returns.
  refund jsonb
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  card_ids text[];
BEGIN
  IF locks THEN
    IF lock_wait_ms IS NOT NULL THEN
      PERFORM set_config('lock_timeout', lock_wait_ms::text, true);
    END IF;
    IF asked @> '[{"mode": "test"}]' THEN
      PERFORM lock_test_clock(c.partner_id) FROM (
        SELECT DISTINCT s.partner_id FROM jsonb_to_recordset(asked) s (partner_id text, mode text)
        WHERE s.mode = 'test') c;
    END IF;
    card_ids := ARRAY(SELECT s.card_id FROM jsonb_to_recordset(asked) s (card_id text));
    PERFORM FROM card k WHERE k.id = ANY (card_ids) ORDER BY k.id FOR NO KEY UPDATE;
  END IF;
  -- Each LIMIT makes it look up row by row in an index, whatever the sizes of the tables were when it was
  -- planned.
  RETURN QUERY
    SELECT k.card, coalesce(a.posted, 0), coalesce(a.held, 0), coalesce(b.posted, 0), p.fee_plan,
      p.spending_controls,
      -- It writes counters, if a card's limits lack them. An increment counts when its authorization began.
      CASE WHEN s.type IN ('purchase', 'authorization', 'increment')
          AND num_nonnulls(k.spending_controls, p.spending_controls) > 0
        THEN count_spending(k.card, p.spending_controls, coalesce(
          CASE WHEN s.type <> 'purchase' THEN (z.authorized).created_at END,
          account_time(k.partner_id, k.mode, asked_at))) END,
      CASE WHEN locks AND k.mode = 'test' THEN lock_test_clock(k.partner_id) END,
      to_jsonb(y.payment), to_jsonb(z.authorized),
      (SELECT jsonb_object_agg(e.id, jsonb_build_object('means', e.means, 'amountCents', e.amount_cents))
        FROM payment_element e WHERE e.approved AND e.id = ANY (n.elements)),
      (SELECT jsonb_object_agg(e.network_transaction_id, e.id) FROM card_transaction e
        WHERE e.mode = k.mode AND e.network_transaction_id = ANY (n.elements) AND e.type <> 'decline'),
      m.said, m.answer,
      CASE WHEN s.type = 'refund' THEN (
        SELECT to_jsonb(r) FROM read_refund_terms(k.id, s.payment_id, s.refunded_id) r) END
    FROM ROWS FROM (jsonb_to_recordset(asked) AS (card_id text, partner_id text, mode text, payment_id text,
      message_id text, type text, elements text[], refunded_id text))
      WITH ORDINALITY s (card_id, partner_id, mode, payment_id, message_id, type, elements, refunded_id, place)
    LEFT JOIN LATERAL (
      SELECT c AS card, c.id, c.partner_id, c.mode, c.spending_controls FROM card c
      WHERE c.id = s.card_id AND (s.partner_id IS NULL OR (c.partner_id = s.partner_id AND c.mode = s.mode)) LIMIT 1
    ) k ON true
    LEFT JOIN LATERAL (SELECT e.posted, e.held FROM ledger.account e
      WHERE e.card_id = k.id LIMIT 1) a ON true
    LEFT JOIN LATERAL (SELECT e.posted FROM ledger.account e
      WHERE e.id = 'prepaid/' || k.mode || '/' || k.partner_id LIMIT 1) b ON true
    LEFT JOIN LATERAL (SELECT e.fee_plan, e.spending_controls FROM partner e
      WHERE e.id = k.partner_id LIMIT 1) p ON true
    LEFT JOIN LATERAL (SELECT n AS payment FROM payment n
      WHERE n.mode = k.mode AND n.payment_id = s.payment_id LIMIT 1) y ON true
    LEFT JOIN LATERAL (SELECT n AS authorized FROM card_authorization n
      WHERE n.id = (y.payment).authorization_id LIMIT 1) z ON true
    LEFT JOIN LATERAL (SELECT e.said, e.answer FROM simulated_message e
      WHERE e.id = s.message_id AND s.mode IS DISTINCT FROM 'test' LIMIT 1) m ON true
    CROSS JOIN LATERAL (SELECT coalesce(s.elements, '{}') || array_remove(ARRAY[s.message_id], NULL)
      || ARRAY(SELECT u ->> 'id' FROM jsonb_array_elements((y.payment).said -> 'unreadable') u) AS elements
      OFFSET 0) n
    ORDER BY s.place;
END $$;

GRANT EXECUTE ON FUNCTION lock_booking_terms TO card_issuing_app, card_issuing_operator;
