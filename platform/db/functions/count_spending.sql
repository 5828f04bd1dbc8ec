-- read_spending() for a decision, as a JSON array, or NULL if there are no limits. The caller has locked the
-- card. It makes the counters that are missing, and deletes those that no limit needs any more. A counter
-- never goes back to an earlier interval. A process whose clock is behind, and an increment of an older
-- authorization, get their sums from the rows.
CREATE OR REPLACE FUNCTION count_spending(about card, account_controls jsonb, at timestamptz) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  spending jsonb;
  keys text[];
  is_counted boolean;
BEGIN
  SELECT jsonb_agg(r), array_agg(r.limit_key), bool_and(r.is_counted) INTO spending, keys, is_counted
  FROM read_spending(about, account_controls, at) r;
  IF NOT is_counted THEN
    DELETE FROM spending_counter c WHERE c.card_id = about.id AND c.limit_key <> ALL (keys);
    INSERT INTO spending_counter AS c (card_id, partner_id, mode, limit_key, starts_at, ends_at, categories, net_cents,
      has_refunds, last_item)
    SELECT DISTINCT ON (r.limit_key) about.id, about.partner_id, about.mode, r.limit_key, r.starts_at, r.ends_at, r.categories,
      s.net_cents, s.has_refunds, s.last_item
    FROM jsonb_to_recordset(spending) r (limit_key text, starts_at timestamptz, ends_at timestamptz, categories text[],
      is_counted boolean)
    CROSS JOIN LATERAL sum_spending(about.id, r.categories, real_time(about.partner_id, about.mode, r.starts_at),
      real_time(about.partner_id, about.mode, r.ends_at)) s
    WHERE NOT r.is_counted
    ON CONFLICT (card_id, limit_key) DO UPDATE
      SET starts_at = excluded.starts_at, ends_at = excluded.ends_at, net_cents = excluded.net_cents,
        has_refunds = excluded.has_refunds, last_item = excluded.last_item
      WHERE c.starts_at < excluded.starts_at;
  END IF;
  RETURN spending;
END $$;

GRANT EXECUTE ON FUNCTION count_spending TO card_issuing_app, card_issuing_operator;
