-- How much of an authorization counts towards spending limits (docs/partners/spending-controls.md). A
-- declined one counts nothing, a pending one what was cleared and what the network holds, and one that has
-- ended what was cleared.
CREATE OR REPLACE FUNCTION counted_cents(z card_authorization) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN CASE z.status
  WHEN 'declined' THEN 0
  WHEN 'pending' THEN coalesce(z.settled_cents + z.target_cents, greatest(z.amount_cents, z.settled_cents))
  ELSE z.settled_cents
END;

GRANT EXECUTE ON FUNCTION counted_cents TO card_issuing_app, card_issuing_operator;
