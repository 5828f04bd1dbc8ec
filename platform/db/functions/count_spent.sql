-- Counts something that a card spent or was refunded (`is_new`), or a change of it, in the counters whose
-- interval contains `at`, and which count merchants with this category code. `item` is what follows the
-- prefix of its id. What is newest is added, and so is any change if there are no refunds, after which the
-- order doesn't matter. Anything else is added up from the rows.
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

GRANT EXECUTE ON FUNCTION count_spent TO card_issuing_app, card_issuing_operator;
