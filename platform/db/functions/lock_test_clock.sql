-- read_test_clock() for whoever writes rows of the account: the clock then stays as it is until the
-- transaction ends, so that all of them are of one time. Transactions don't wait for each other: only an
-- advance of the same account waits for them, and they for it.
CREATE OR REPLACE FUNCTION lock_test_clock(account text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('test_clock/' || account, 0));
  -- In a statement of its own, which sees what was committed during the wait.
  RETURN read_test_clock(account);
END $$;

GRANT EXECUTE ON FUNCTION lock_test_clock TO card_issuing_app, card_issuing_operator;
