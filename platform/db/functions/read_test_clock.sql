-- The clock of an account's test mode as JSON (domain/account-clock.ts); NULL if it was never advanced.
CREATE OR REPLACE FUNCTION read_test_clock(account text) RETURNS jsonb LANGUAGE sql STABLE
RETURN (
  SELECT jsonb_build_object('offsetSeconds', max(c.offset_seconds), 'advances',
    jsonb_agg(jsonb_build_object('atMs', (extract(epoch FROM c.advanced_at) * 1000)::bigint,
      'secondsBefore', c.seconds_before) ORDER BY c.advanced_at DESC))
  FROM test_clock_advance c WHERE c.partner_id = account AND c.advanced_at >
    (SELECT max(l.advanced_at) FROM test_clock_advance l WHERE l.partner_id = account) - interval '2 minutes'
  HAVING count(*) > 0
);

GRANT EXECUTE ON FUNCTION read_test_clock TO card_issuing_app, card_issuing_operator;
