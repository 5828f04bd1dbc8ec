-- Trigger of balance_adjustment: the login is the session's own, whatever the statement says.
CREATE OR REPLACE FUNCTION stamp_adjustment() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.login := session_user;
  RETURN NEW;
END $$;
