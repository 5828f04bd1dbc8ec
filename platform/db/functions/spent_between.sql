-- What a card spent with merchants of these category codes (NULL for all) from `starts_at` until before
-- `ends_at`, both in real time: see sum_spending().
CREATE OR REPLACE FUNCTION spent_between(about_card text, codes text[], starts_at timestamptz, ends_at timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT net_cents FROM sum_spending(about_card, codes, starts_at, ends_at)
$$;

GRANT EXECUTE ON FUNCTION spent_between TO card_issuing_app, card_issuing_operator;
