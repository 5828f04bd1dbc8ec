-- Up Migration

-- A refund gives back at most what its interval had spent by then (docs/partners/spending-controls.md).
ALTER TABLE spending_counter
  -- If there are any, what an earlier change does to the sum depends on what came after it.
  ADD has_refunds boolean NOT NULL DEFAULT false,
  -- The newest of what is counted, as what follows its id's prefix; '' if there is nothing.
  ADD last_item text COLLATE "C" NOT NULL DEFAULT '';
-- They were plain sums. The next decision makes each anew, from the rows.
DELETE FROM spending_counter;

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

CREATE OR REPLACE FUNCTION spent_between(about_card text, codes text[], starts_at timestamptz, ends_at timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT net_cents FROM sum_spending(about_card, codes, starts_at, ends_at)
$$;

CREATE OR REPLACE FUNCTION count_spent(about_card text, code text, at timestamptz, item text, cents bigint, is_new boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  c spending_counter;
BEGIN
  FOR c IN
    SELECT * FROM spending_counter s
    WHERE s.card_id = about_card AND s.starts_at <= at AND s.ends_at > at AND (s.categories IS NULL OR code = ANY (s.categories))
  LOOP
    IF is_new AND item COLLATE "C" > c.last_item THEN
      c.net_cents := greatest(0, c.net_cents + cents);
      c.has_refunds := c.has_refunds OR cents < 0;
      c.last_item := item;
    ELSIF NOT c.has_refunds AND NOT (is_new AND cents < 0) THEN
      c.net_cents := c.net_cents + cents;
    ELSE
      SELECT s.net_cents, s.has_refunds, s.last_item INTO c.net_cents, c.has_refunds, c.last_item
      FROM sum_spending(c.card_id, c.categories, real_time(c.partner_id, c.mode, c.starts_at),
        real_time(c.partner_id, c.mode, c.ends_at)) s;
    END IF;
    UPDATE spending_counter s SET net_cents = c.net_cents, has_refunds = c.has_refunds, last_item = c.last_item
      WHERE s.card_id = c.card_id AND s.limit_key = c.limit_key;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION count_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  cents bigint := CASE WHEN NEW.type = 'refund' THEN -NEW.amount_cents ELSE NEW.amount_cents END;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    cents := CASE WHEN NEW.authorization_id IS NULL THEN cents ELSE -cents END;
  END IF;
  PERFORM count_spent(NEW.card_id, NEW.merchant_category_code, NEW.created_at, substr(NEW.id, 5), cents, TG_OP = 'INSERT');
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION count_authorization() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  cents bigint := counted_cents(NEW);
BEGIN
  IF TG_OP = 'UPDATE' THEN
    cents := cents - counted_cents(OLD);
  END IF;
  IF cents <> 0 THEN
    PERFORM count_spent(NEW.card_id, NEW.merchant_category_code, NEW.created_at, substr(NEW.id, 6), cents, TG_OP = 'INSERT');
  END IF;
  RETURN NULL;
END $$;

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

DROP FUNCTION add_spending;

GRANT UPDATE (has_refunds, last_item) ON spending_counter TO card_issuing_app, card_issuing_operator;
GRANT EXECUTE ON FUNCTION sum_spending, count_spent TO card_issuing_app, card_issuing_operator;
