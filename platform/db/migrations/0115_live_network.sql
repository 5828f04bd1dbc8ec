-- Up Migration

-- The card network that has this database's live data (docs/decisions/one-live-network.md). No row: nothing live has been made.
CREATE TABLE live_network (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  network text NOT NULL COLLATE "C"
);
-- What earlier releases made. If it was not the simulated network, the next process to start names its own.
INSERT INTO live_network (network) SELECT 'simulated' WHERE EXISTS (SELECT FROM simulated_network.card);

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
    + (SELECT count(*) FROM topup t WHERE t.mode = 'live' AND t.status = 'pending')
    + (SELECT count(*) FROM withdrawal w WHERE w.mode = 'live' AND w.status = 'pending')
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

GRANT SELECT, INSERT, UPDATE ON live_network TO card_issuing_app;
GRANT SELECT ON live_network TO card_issuing_operator;
GRANT EXECUTE ON FUNCTION hold_live_network, take_live_network TO card_issuing_app;
