-- What an authorization counts towards spending limits (docs/partners/spending-controls.md): nothing if it was declined; what was
-- authorized while it is pending, and what was cleared afterwards.
CREATE OR REPLACE FUNCTION counted_cents(z card_authorization) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN CASE z.status
  WHEN 'declined' THEN 0
  WHEN 'pending' THEN greatest(z.amount_cents, z.settled_cents)
  ELSE z.settled_cents
END;
