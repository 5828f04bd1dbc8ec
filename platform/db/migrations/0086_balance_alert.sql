-- Up Migration

-- The balance alert of a prepaid account (docs/decisions/balance-alerts.md): its threshold in cents, and whether the
-- available balance was below it after the last change. Only ledger.set_alert() and the trigger write them.
ALTER TABLE ledger.account
  ADD alert_cents bigint CONSTRAINT alert_threshold CHECK (alert_cents > 0),
  ADD alert_is_low boolean NOT NULL DEFAULT false;

CREATE FUNCTION ledger.tell_crossing() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  at timestamptz := account_time(NEW.partner_id, NEW.mode, clock_timestamp());
  random bytea := uuid_send(gen_random_uuid());
  event_id text := 'evt_' || id_time(clock_timestamp()) || (
    SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', (get_byte(random, i) & 31) + 1, 1), '')
    FROM generate_series(0, 15) i);
  event_type text;
BEGIN
  NEW.alert_is_low := NOT NEW.alert_is_low;
  event_type := CASE WHEN NEW.alert_is_low THEN 'balance.low' ELSE 'balance.recovered' END;
  INSERT INTO event (id, partner_id, mode, type, body, created_at)
    VALUES (event_id, NEW.partner_id, NEW.mode, event_type, format(
      '{"id":"%s","type":"%s","created":"%s","mode":"%s","data":{"balance":{"object":"balance","mode":"%4$s","currency":"USD",'
        '"available":%5$s,"held":%6$s,"total":%7$s},"threshold":%8$s}}',
      event_id, event_type, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), NEW.mode,
      NEW.posted - NEW.held, NEW.held, NEW.posted, NEW.alert_cents), at);
  RETURN NEW;
END $$;
-- An account without an alert pays for a comparison with NULL.
CREATE TRIGGER tell_crossing BEFORE UPDATE ON ledger.account FOR EACH ROW
  WHEN (NEW.alert_cents IS NOT NULL AND NEW.alert_is_low <> (NEW.posted - NEW.held < NEW.alert_cents))
  EXECUTE FUNCTION ledger.tell_crossing();

CREATE FUNCTION ledger.set_alert(partner text, of_mode text, threshold bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  prepaid_id text := 'prepaid/' || of_mode || '/' || partner;
BEGIN
  INSERT INTO ledger.account (id, partner_id, mode, kind) VALUES (prepaid_id, partner, of_mode, 'prepaid') ON CONFLICT (id) DO NOTHING;
  UPDATE ledger.account SET alert_cents = threshold, alert_is_low = alert_is_low AND threshold IS NOT NULL WHERE id = prepaid_id;
END $$;
GRANT EXECUTE ON FUNCTION ledger.set_alert TO card_issuing_api;
