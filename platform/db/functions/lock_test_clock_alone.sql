-- For an advance of an account's clock: waits for the transactions that hold it, and lets no other hold it
-- until this one ends.
CREATE OR REPLACE FUNCTION lock_test_clock_alone(account text) RETURNS void LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock(hashtextextended('test_clock/' || account, 0))
$$;

GRANT EXECUTE ON FUNCTION lock_test_clock_alone TO card_issuing_api;
