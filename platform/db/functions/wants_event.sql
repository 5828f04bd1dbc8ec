-- Whether an endpoint wants an event: one for a single endpoint goes to it alone, whatever types it is for;
-- any other to those that are for its type, but for the one that it leaves out.
CREATE OR REPLACE FUNCTION wants_event(event_types text[], type text, only_id text, except_id text, endpoint_id text)
RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN CASE WHEN only_id IS NOT NULL THEN endpoint_id = only_id
  ELSE (event_types IS NULL OR type = ANY (event_types)) AND endpoint_id IS DISTINCT FROM except_id END;

GRANT EXECUTE ON FUNCTION wants_event TO card_issuing_app, card_issuing_operator;
