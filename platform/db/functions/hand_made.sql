-- What people have said that these elements of payments mean, by the network's ids of them. It is VOLATILE, so
-- that a statement that has waited for the card's lock gets what the last holder of it has committed.
CREATE OR REPLACE FUNCTION hand_made(elements text[]) RETURNS jsonb LANGUAGE sql AS $$
  SELECT coalesce(jsonb_object_agg(e.id, jsonb_build_object('means', e.means, 'amountCents', e.amount_cents)), '{}')
  FROM payment_element e WHERE e.approved AND e.id = ANY (elements)
$$;

GRANT EXECUTE ON FUNCTION hand_made TO card_issuing_app, card_issuing_operator;
