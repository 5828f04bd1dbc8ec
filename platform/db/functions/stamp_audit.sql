-- Trigger of audit_entry: the login is the session's own, whatever the statement says. The rest is what the
-- operator's command line sends when it connects.
CREATE OR REPLACE FUNCTION stamp_audit() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.database_login := session_user;
  NEW.operator := nullif(current_setting('card_issuing.operator', true), '');
  NEW.os_user := nullif(current_setting('card_issuing.os_user', true), '');
  NEW.host := nullif(current_setting('card_issuing.host', true), '');
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER stamp BEFORE INSERT ON audit_entry FOR EACH ROW EXECUTE FUNCTION stamp_audit();
