-- Trigger of balance_adjustment: the login is the session's own, whatever the statement says.
CREATE OR REPLACE FUNCTION stamp_adjustment() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.login := session_user;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER stamp BEFORE INSERT ON balance_adjustment FOR EACH ROW EXECUTE FUNCTION stamp_adjustment();
