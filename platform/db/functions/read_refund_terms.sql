-- What a refund on a card is decided on: what the card's pending top-ups would add, and the purchase that it
-- gives money back for, which is the only one of its payment, unless it is named.
CREATE OR REPLACE FUNCTION read_refund_terms(about_card text, network_payment text, named text) RETURNS TABLE (
  arriving_cents numeric,
  refunded jsonb,
  -- How many purchases the payment has; 0 if the refund names one.
  purchases integer
) LANGUAGE sql AS $$
  SELECT coalesce((SELECT sum(t.amount_cents) FROM card_transfer t
      WHERE t.card_id = about_card AND t.direction = 'topup' AND t.status = 'pending'), 0),
    (SELECT jsonb_build_object('id', e.id, 'type', e.type, 'amountCents', e.amount_cents,
        'givenBackCents', (SELECT coalesce(sum(g.amount_cents), 0) FROM card_transaction g
          WHERE g.refunded_transaction_id = e.id AND g.partner_id = e.partner_id AND g.mode = e.mode),
        'merchant', jsonb_build_object('name', e.merchant_name, 'categoryCode', e.merchant_category_code,
          'city', e.merchant_city, 'country', e.merchant_country))
      FROM card_transaction e
      WHERE e.card_id = about_card AND e.id = coalesce(named, CASE o.purchases WHEN 1 THEN o.id END)),
    o.purchases
  FROM (
    SELECT min(e.id) AS id, count(*)::int AS purchases FROM card_transaction e
    WHERE named IS NULL AND e.card_id = about_card AND e.network_payment_id = network_payment AND e.type = 'purchase'
  ) o
$$;

GRANT EXECUTE ON FUNCTION read_refund_terms TO card_issuing_app, card_issuing_operator;
