-- For a process that starts: makes its network the one of this database's live data, unless another has open
-- cards or pending operations. Returns the network that then has them, and how many if it is another. It
-- waits for whoever is about to ask, so that it counts what they have begun.
CREATE OR REPLACE FUNCTION take_live_network(mine text) RETURNS TABLE (
  network text,
  open_cards bigint,
  open_operations bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  theirs text;
  cards bigint;
  operations bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('live_network', 0));
  theirs := (SELECT n.network FROM live_network n);
  IF theirs = mine THEN
    RETURN QUERY SELECT mine, 0::bigint, 0::bigint;
    RETURN;
  END IF;
  SELECT count(*) FILTER (WHERE k.status NOT IN ('blocked', 'failed')),
      count(*) FILTER (WHERE k.claim_id IS NOT NULL OR k.status_change_claim_id IS NOT NULL)
    INTO cards, operations FROM card k WHERE k.mode = 'live';
  operations := operations
    + (SELECT count(*) FROM card_transfer t WHERE t.mode = 'live' AND t.status = 'pending')
    + (SELECT count(*) FROM true_up u WHERE u.mode = 'live' AND u.status = 'pending');
  IF theirs IS NULL AND cards + operations > 0 THEN
    INSERT INTO live_network (network) VALUES (mine);
  ELSIF theirs IS NOT NULL AND cards + operations = 0 THEN
    UPDATE live_network SET network = mine;
  ELSIF theirs IS NOT NULL THEN
    RETURN QUERY SELECT theirs, cards, operations;
    RETURN;
  END IF;
  RETURN QUERY SELECT mine, 0::bigint, 0::bigint;
END $$;

GRANT EXECUTE ON FUNCTION take_live_network TO card_issuing_app;
