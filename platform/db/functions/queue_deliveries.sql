-- Row "written" of the table in domain/event.ts. Trigger of event: the transaction that writes an event also
-- writes its deliveries, one for each endpoint that wants it, so no event is lost in between. An event that
-- no endpoint wants is only sent on request.
CREATE OR REPLACE FUNCTION queue_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO delivery (event_id, endpoint_id, partner_id, mode, type, status)
    SELECT e.id, coalesce(w.id, ''), e.partner_id, e.mode, e.type,
      CASE WHEN w.id IS NULL THEN 'no_endpoint' ELSE 'pending' END
    FROM written e LEFT JOIN webhook_endpoint w ON w.partner_id = e.partner_id AND w.mode = e.mode
      AND wants_event(w.event_types, e.type, e.only_endpoint_id, e.except_endpoint_id, w.id);
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER queue_deliveries AFTER INSERT ON event REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION queue_deliveries();
