-- Up Migration

-- How many events an account can still ask for, in each mode (docs/partners/webhooks.md). It outlives its endpoints, so that
-- deleting one gives no more.
CREATE TABLE webhook_allowance (
  partner_id text COLLATE "C" NOT NULL REFERENCES partner,
  mode text COLLATE "C" NOT NULL CHECK (mode IN ('test', 'live')),
  -- When it is whole again.
  full_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, mode)
);
GRANT SELECT ON webhook_allowance TO card_issuing_app, card_issuing_operator;
GRANT INSERT, UPDATE ON webhook_allowance TO card_issuing_api;

-- A key that was revoked stays so, and one that expires never lives longer: whoever can write as the service can't bring one back.
CREATE FUNCTION keep_keys_ended() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
CREATE TRIGGER ended_for_good BEFORE UPDATE OF revoked_at, expires_at ON api_key
  FOR EACH ROW EXECUTE FUNCTION keep_keys_ended();
