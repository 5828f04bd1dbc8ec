-- A key that was revoked stays so, and one that expires never lives longer: whoever can write as the service
-- can't bring one back. Only the owner of the database can.
CREATE OR REPLACE FUNCTION keep_keys_ended() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_has_role(session_user, current_user, 'MEMBER') THEN
    RETURN NEW;
  ELSIF OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at THEN
    RAISE EXCEPTION 'the API key % is revoked: make a new one', OLD.id USING ERRCODE = 'restrict_violation';
  ELSIF OLD.expires_at IS NOT NULL AND (NEW.expires_at IS NULL OR NEW.expires_at > OLD.expires_at) THEN
    RAISE EXCEPTION 'the API key % can''t expire later: make a new one', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER ended_for_good BEFORE UPDATE OF revoked_at, expires_at ON api_key
  FOR EACH ROW EXECUTE FUNCTION keep_keys_ended();
