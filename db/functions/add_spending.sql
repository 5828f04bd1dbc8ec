-- Adds cents to the counters of a card whose interval contains `at`, and which count merchants with this category code.
CREATE OR REPLACE FUNCTION add_spending(about_card text, code text, at timestamptz, cents bigint) RETURNS void LANGUAGE sql AS $$
  UPDATE spending_counter c SET net_cents = c.net_cents + cents
  WHERE c.card_id = about_card AND c.starts_at <= at AND c.ends_at > at
    AND (c.categories IS NULL OR code = ANY (c.categories))
$$;
