-- The clock of an account's test mode as JSON (domain/account-clock.ts); NULL if it was never advanced.
CREATE OR REPLACE FUNCTION read_test_clock(account text) RETURNS jsonb LANGUAGE sql STABLE
RETURN (
  SELECT jsonb_build_object('offsetSeconds', c.offset_seconds, 'secondsBefore', c.seconds_before,
    'advancedAtMs', (extract(epoch FROM c.advanced_at) * 1000)::bigint)
  FROM test_clock_advance c WHERE c.partner_id = account ORDER BY c.advanced_at DESC LIMIT 1
);

GRANT EXECUTE ON FUNCTION read_test_clock TO card_issuing_app, card_issuing_operator;
