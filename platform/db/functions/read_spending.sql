-- The spending limits that apply to a card, its own first, each with what was spent in its interval at `at`.
-- Intervals are in UTC, and weeks begin on Monday. It reads the interval's counter. If there is none, it adds
-- up the rows.
CREATE OR REPLACE FUNCTION read_spending(about card, account_controls jsonb, at timestamptz) RETURNS TABLE (
  source text,
  amount_cents bigint,
  every text,
  categories text[],
  limit_key text,
  -- NULL for a limit per authorization.
  starts_at timestamptz,
  ends_at timestamptz,
  net_cents bigint,
  -- Whether it has a counter for this interval.
  is_counted boolean
) LANGUAGE sql STABLE AS $$
  SELECT l.source, l.amount_cents, l.every, l.categories, l.limit_key, l.starts_at, l.ends_at,
    CASE WHEN l.every = 'per_authorization' THEN 0
      ELSE coalesce(c.net_cents, spent_between(about.id, l.categories,
        real_time(about.partner_id, about.mode, l.starts_at), real_time(about.partner_id, about.mode, l.ends_at))) END,
    l.every = 'per_authorization' OR c.card_id IS NOT NULL
  FROM (
    SELECT s.place AS source_place, s.source, e.place, (e.entry ->> 'amount')::bigint AS amount_cents,
      e.entry ->> 'interval' AS every, k.categories,
      (e.entry ->> 'interval') || coalesce(' ' || array_to_string(k.categories, ','), '') AS limit_key,
      CASE WHEN u.unit IS NOT NULL THEN date_trunc(u.unit, at, 'UTC')
        WHEN e.entry ->> 'interval' = 'all_time' THEN '-infinity' END AS starts_at,
      CASE WHEN u.unit IS NOT NULL
        THEN (date_trunc(u.unit, at AT TIME ZONE 'UTC') + ('1 ' || u.unit)::interval) AT TIME ZONE 'UTC'
        WHEN e.entry ->> 'interval' = 'all_time' THEN 'infinity' END AS ends_at
    FROM (VALUES (1, 'card', about.spending_controls), (2, 'account', account_controls)) s (place, source, controls)
    CROSS JOIN LATERAL jsonb_array_elements(
      CASE jsonb_typeof(s.controls -> 'spending_limits') WHEN 'array' THEN s.controls -> 'spending_limits' ELSE '[]' END
    ) WITH ORDINALITY e (entry, place)
    CROSS JOIN LATERAL (SELECT CASE e.entry ->> 'interval'
      WHEN 'daily' THEN 'day' WHEN 'weekly' THEN 'week' WHEN 'monthly' THEN 'month' WHEN 'yearly' THEN 'year' END) u (unit)
    CROSS JOIN LATERAL (SELECT CASE jsonb_typeof(e.entry -> 'categories') WHEN 'array' THEN
      ARRAY(SELECT code FROM jsonb_array_elements_text(e.entry -> 'categories') code ORDER BY code) END) k (categories)
  ) l
  LEFT JOIN spending_counter c ON c.card_id = about.id AND c.limit_key = l.limit_key AND c.starts_at = l.starts_at
  ORDER BY l.source_place, l.place
$$;

GRANT EXECUTE ON FUNCTION read_spending TO card_issuing_app, card_issuing_operator;
