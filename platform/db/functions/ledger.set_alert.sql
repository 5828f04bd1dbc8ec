-- Sets the threshold of an account's balance alert, in cents, or turns the alert off (NULL). What the balance
-- is now may cross it: the trigger ledger.tell_crossing writes the event. The account may be one that nothing
-- has touched yet.
CREATE OR REPLACE FUNCTION ledger.set_alert(partner text, of_mode text, threshold bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  prepaid_id text := 'prepaid/' || of_mode || '/' || partner;
BEGIN
  -- First, so that the event has the time that the account then has.
  IF of_mode = 'test' THEN
    PERFORM lock_test_clock(partner);
  END IF;
  INSERT INTO ledger.account (id, partner_id, mode, kind) VALUES (prepaid_id, partner, of_mode, 'prepaid') ON CONFLICT (id) DO NOTHING;
  UPDATE ledger.account SET alert_cents = threshold, alert_is_low = alert_is_low AND threshold IS NOT NULL WHERE id = prepaid_id;
END $$;

GRANT EXECUTE ON FUNCTION ledger.set_alert TO card_issuing_api;
