-- The transactions of elements of payments that are booked, by the network's ids of them.
CREATE OR REPLACE FUNCTION read_booked_elements(about_mode text, elements text[]) RETURNS jsonb LANGUAGE sql AS $$
  SELECT coalesce(jsonb_object_agg(e.network_transaction_id, e.id), '{}') FROM card_transaction e
  WHERE e.mode = about_mode AND e.network_transaction_id = ANY (elements) AND e.type <> 'decline'
$$;

GRANT EXECUTE ON FUNCTION read_booked_elements TO card_issuing_app, card_issuing_operator;
