-- What a card spent with merchants of these category codes (NULL for all), less refunds: the plain sum of its rows. The interval
-- includes `starts_at` and ends before `ends_at`, both in real time. Ids begin with their real time, so the rows are a range of an
-- index.
CREATE OR REPLACE FUNCTION spent_between(about_card text, codes text[], starts_at timestamptz, ends_at timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT (coalesce((
      SELECT sum(counted_cents(z)) FROM card_authorization z
      WHERE z.card_id = about_card AND (codes IS NULL OR z.merchant_category_code = ANY (codes))
        AND z.id >= 'auth_' || id_time(greatest(starts_at, 'epoch'))
        AND z.id < 'auth_' || id_time(least(ends_at, '9999-01-01Z'))
    ), 0) + coalesce((
      SELECT sum(CASE t.type WHEN 'refund' THEN -t.amount_cents ELSE t.amount_cents END) FROM card_transaction t
      WHERE t.card_id = about_card AND (codes IS NULL OR t.merchant_category_code = ANY (codes))
        AND t.id >= 'txn_' || id_time(greatest(starts_at, 'epoch'))
        AND t.id < 'txn_' || id_time(least(ends_at, '9999-01-01Z'))
        AND (t.type = 'refund' OR (t.type = 'purchase' AND t.authorization_id IS NULL))
    ), 0))::bigint
$$;
