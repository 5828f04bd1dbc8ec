-- Trigger of adjustment_request: the logins are the session's own, whatever the statement says, and a request
-- is decided once.
CREATE OR REPLACE FUNCTION stamp_adjustment_request() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    NEW.requested_login := session_user;
    NEW.status := 'pending';
    NEW.decided_by := NULL;
    NEW.decided_login := NULL;
    NEW.decided_at := NULL;
  ELSE
    IF OLD.status <> 'pending' THEN
      RAISE EXCEPTION 'the request % was decided before', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    NEW.decided_login := session_user;
    NEW.decided_at := clock_timestamp();
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER stamp BEFORE INSERT OR UPDATE ON adjustment_request
  FOR EACH ROW EXECUTE FUNCTION stamp_adjustment_request();
