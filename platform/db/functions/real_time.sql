-- The first real time at which it was a time or later for an account in a mode: account_time() the other way
-- round. Ids keep the real time, so a range of an account's time is a range of ids.
CREATE OR REPLACE FUNCTION real_time(account text, of_mode text, at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE
RETURN CASE WHEN of_mode = 'test' THEN least(
    at - coalesce((
      SELECT c.offset_seconds * interval '1 second' FROM test_clock_advance c
      WHERE c.partner_id = account AND c.shows <= at ORDER BY c.shows DESC LIMIT 1
    ), interval '0'),
    -- A time that the clock jumped over came when it jumped.
    (SELECT c.advanced_at FROM test_clock_advance c
      WHERE c.partner_id = account AND c.shows > at ORDER BY c.shows LIMIT 1)
  ) ELSE at END;

GRANT EXECUTE ON FUNCTION real_time TO card_issuing_app, card_issuing_operator;
