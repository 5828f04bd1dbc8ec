-- Trigger of ledger.account: the available balance has crossed the threshold of the account's alert, so the
-- transaction that does this writes the event. Under the account's lock, so there is one for each crossing.
-- The event is made as requests/event.ts makes others. It runs with the rights of whoever writes the
-- account: its owner.
CREATE OR REPLACE FUNCTION ledger.tell_crossing() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  real_at timestamptz := clock_timestamp();
  at timestamptz := account_time(NEW.partner_id, NEW.mode, real_at);
  random bytea := uuid_send(gen_random_uuid());
  event_id text := 'evt_' || id_time(real_at) || (
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
CREATE OR REPLACE TRIGGER tell_crossing BEFORE UPDATE ON ledger.account FOR EACH ROW
  WHEN (NEW.alert_cents IS NOT NULL AND NEW.alert_is_low <> (NEW.posted - NEW.held < NEW.alert_cents))
  EXECUTE FUNCTION ledger.tell_crossing();
