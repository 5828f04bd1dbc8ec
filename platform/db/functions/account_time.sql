-- What time it is for an account in a mode at a real time: in live mode the real time, in test mode what the
-- account's sandbox clock showed (docs/decisions/sandbox-clock.md). It never goes back from one real time to
-- a later one.
CREATE OR REPLACE FUNCTION account_time(account text, of_mode text, at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE
RETURN CASE WHEN of_mode = 'test' THEN at + coalesce((
    SELECT c.offset_seconds * interval '1 second' FROM test_clock_advance c
    WHERE c.partner_id = account AND c.advanced_at <= at ORDER BY c.advanced_at DESC LIMIT 1
  ), interval '0') ELSE at END;

GRANT EXECUTE ON FUNCTION account_time TO card_issuing_app, card_issuing_operator;
