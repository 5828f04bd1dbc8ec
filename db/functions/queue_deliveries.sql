-- Row "written" of the table in domain/event.ts. Trigger of event: the transaction that writes an event also writes its
-- delivery, so no event is lost in between. Events of an account without an endpoint are only sent on request.
CREATE OR REPLACE FUNCTION queue_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO delivery (event_id, partner_id, mode, type, status)
    SELECT e.id, e.partner_id, e.mode, e.type, CASE WHEN w.partner_id IS NULL THEN 'no_endpoint' ELSE 'pending' END
    FROM written e LEFT JOIN webhook_endpoint w ON w.partner_id = e.partner_id AND w.mode = e.mode;
  RETURN NULL;
END $$;
