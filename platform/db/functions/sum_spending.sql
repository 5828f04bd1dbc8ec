-- What a card spent with merchants of these category codes (NULL for all): the running sum of what counts, in
-- the order of creation, in which a refund gives back at most what had been spent by then. The interval
-- includes `starts_at` and ends before `ends_at`, both in real time. Ids begin with their real time, so the
-- rows are a range of an index, and what follows the prefix is the order.
CREATE OR REPLACE FUNCTION sum_spending(about_card text, codes text[], starts_at timestamptz, ends_at timestamptz) RETURNS TABLE (
  net_cents bigint,
  has_refunds boolean,
  -- The newest of what counts, as what follows its id's prefix; '' if there is nothing.
  last_item text
) LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(r.cents) - least(0, min(r.running)), 0)::bigint, coalesce(bool_or(r.cents < 0), false),
    coalesce(max(r.item), '')
  FROM (
    SELECT i.item, i.cents, sum(i.cents) OVER (ORDER BY i.item ROWS UNBOUNDED PRECEDING) AS running
    FROM (
      SELECT substr(z.id, 6) COLLATE "C" AS item, counted_cents(z) AS cents FROM card_authorization z
      WHERE z.card_id = about_card AND (codes IS NULL OR z.merchant_category_code = ANY (codes))
        AND z.id >= 'auth_' || id_time(greatest(starts_at, 'epoch'))
        AND z.id < 'auth_' || id_time(least(ends_at, '9999-01-01Z'))
      UNION ALL
      SELECT substr(t.id, 5) COLLATE "C", CASE t.type WHEN 'refund' THEN -t.amount_cents ELSE t.amount_cents END
      FROM card_transaction t
      WHERE t.card_id = about_card AND (codes IS NULL OR t.merchant_category_code = ANY (codes))
        AND t.id >= 'txn_' || id_time(greatest(starts_at, 'epoch'))
        AND t.id < 'txn_' || id_time(least(ends_at, '9999-01-01Z'))
        AND (t.type = 'refund' OR (t.type = 'purchase' AND t.authorization_id IS NULL))
    ) i
  ) r
$$;

GRANT EXECUTE ON FUNCTION sum_spending TO card_issuing_app, card_issuing_operator;
