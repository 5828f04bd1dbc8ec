-- Up Migration

-- What merchants a card can pay, and how much (docs/partners/spending-controls.md). NULL without any. An account's hold for each
-- of its cards, in both modes.
ALTER TABLE card ADD spending_controls jsonb;
ALTER TABLE partner ADD spending_controls jsonb;
GRANT UPDATE (spending_controls) ON card TO card_issuing_app;
GRANT UPDATE (spending_controls) ON partner TO card_issuing_operator;

-- What a card has spent in the latest interval of a limit (docs/decisions/spending-controls.md). Triggers keep it right; the
-- first decision of an interval makes it.
CREATE TABLE spending_counter (
  card_id text COLLATE "C" NOT NULL,
  partner_id text NOT NULL,
  mode text NOT NULL,
  -- The limit's interval and categories, not its amount: a limit that only changes its amount keeps its counter.
  limit_key text COLLATE "C" NOT NULL,
  -- -infinity and infinity if it counts since ever.
  starts_at timestamptz NOT NULL,
  ends_at timestamptz NOT NULL,
  -- The merchant category codes that it counts; NULL for all.
  categories text[],
  -- What counts in the interval, less its refunds, so it may be below zero.
  net_cents bigint NOT NULL,
  PRIMARY KEY (card_id, limit_key),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  CHECK (starts_at < ends_at)
);
-- Rows are updated in place, so pages need room.
ALTER TABLE spending_counter SET (fillfactor = 80);

CREATE FUNCTION counted_cents(z card_authorization) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN CASE z.status
  WHEN 'declined' THEN 0
  WHEN 'pending' THEN greatest(z.amount_cents, z.settled_cents)
  ELSE z.settled_cents
END;

CREATE FUNCTION spent_between(about_card text, codes text[], starts_at timestamptz, ends_at timestamptz) RETURNS bigint
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

CREATE FUNCTION read_spending(about card, account_controls jsonb, at timestamptz) RETURNS TABLE (
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
      ELSE coalesce(c.net_cents, spent_between(about.id, l.categories, l.starts_at, l.ends_at)) END,
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

CREATE FUNCTION count_spending(about card, account_controls jsonb, at timestamptz) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  spending jsonb;
  keys text[];
  is_counted boolean;
BEGIN
  SELECT jsonb_agg(r), array_agg(r.limit_key), bool_and(r.is_counted) INTO spending, keys, is_counted
  FROM read_spending(about, account_controls, at) r;
  IF NOT is_counted THEN
    DELETE FROM spending_counter c WHERE c.card_id = about.id AND c.limit_key <> ALL (keys);
    INSERT INTO spending_counter AS c (card_id, partner_id, mode, limit_key, starts_at, ends_at, categories, net_cents)
    SELECT DISTINCT ON (r.limit_key) about.id, about.partner_id, about.mode, r.limit_key, r.starts_at, r.ends_at, r.categories,
      r.net_cents
    FROM jsonb_to_recordset(spending) r (limit_key text, starts_at timestamptz, ends_at timestamptz, categories text[],
      net_cents bigint, is_counted boolean)
    WHERE NOT r.is_counted
    ON CONFLICT (card_id, limit_key) DO UPDATE
      SET starts_at = excluded.starts_at, ends_at = excluded.ends_at, net_cents = excluded.net_cents
      WHERE c.starts_at < excluded.starts_at;
  END IF;
  RETURN spending;
END $$;

CREATE FUNCTION add_spending(about_card text, code text, at timestamptz, cents bigint) RETURNS void LANGUAGE sql AS $$
  UPDATE spending_counter c SET net_cents = c.net_cents + cents
  WHERE c.card_id = about_card AND c.starts_at <= at AND c.ends_at > at
    AND (c.categories IS NULL OR code = ANY (c.categories))
$$;

CREATE FUNCTION count_authorization() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  cents bigint := counted_cents(NEW);
BEGIN
  IF TG_OP = 'UPDATE' THEN
    cents := cents - counted_cents(OLD);
  END IF;
  IF cents <> 0 THEN
    PERFORM add_spending(NEW.card_id, NEW.merchant_category_code, NEW.created_at, cents);
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION count_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  cents bigint := CASE WHEN NEW.type = 'refund' THEN -NEW.amount_cents ELSE NEW.amount_cents END;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    cents := CASE WHEN NEW.authorization_id IS NULL THEN cents ELSE -cents END;
  END IF;
  PERFORM add_spending(NEW.card_id, NEW.merchant_category_code, NEW.created_at, cents);
  RETURN NULL;
END $$;

CREATE TRIGGER card_authorization_counted AFTER INSERT OR UPDATE OF status, amount_cents, settled_cents ON card_authorization
  FOR EACH ROW EXECUTE FUNCTION count_authorization();
CREATE TRIGGER card_transaction_counted AFTER INSERT ON card_transaction
  FOR EACH ROW WHEN (NEW.type = 'refund' OR (NEW.type = 'purchase' AND NEW.authorization_id IS NULL))
  EXECUTE FUNCTION count_transaction();
-- A clearing that came before its authorization counts by itself until the two are linked.
CREATE TRIGGER card_transaction_linked AFTER UPDATE OF authorization_id ON card_transaction
  FOR EACH ROW WHEN (NEW.type = 'purchase' AND (OLD.authorization_id IS NULL) <> (NEW.authorization_id IS NULL))
  EXECUTE FUNCTION count_transaction();

GRANT SELECT, INSERT, DELETE ON spending_counter TO card_issuing_app, card_issuing_operator;
GRANT UPDATE (starts_at, ends_at, net_cents) ON spending_counter TO card_issuing_app, card_issuing_operator;
GRANT EXECUTE ON FUNCTION id_time, counted_cents, spent_between, read_spending, count_spending, add_spending
  TO card_issuing_app, card_issuing_operator;
