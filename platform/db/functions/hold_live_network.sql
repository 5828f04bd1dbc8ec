-- The network that has this database's live data, before it is asked for anything: the asking process's own,
-- if nothing live has been made. What is pending by then stays that network's
-- (docs/decisions/one-live-network.md). The row is read in a statement of its own, which sees what was
-- committed during the wait for the lock.
CREATE OR REPLACE FUNCTION hold_live_network(mine text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  theirs text;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('live_network', 0));
  SELECT network INTO theirs FROM live_network;
  IF theirs IS NULL THEN
    INSERT INTO live_network (network) VALUES (mine) ON CONFLICT DO NOTHING;
    SELECT network INTO theirs FROM live_network;
  END IF;
  RETURN theirs;
END $$;

GRANT EXECUTE ON FUNCTION hold_live_network TO card_issuing_app;
