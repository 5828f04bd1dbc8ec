-- Up Migration

-- What one process measures of the whole database for all of them: the numbers of the metrics, and the check of the ledger.
CREATE TABLE measurement (
  name text COLLATE "C" PRIMARY KEY,
  -- Whoever moves this on is the one who measures next.
  due_at timestamptz NOT NULL DEFAULT '-infinity',
  measured_at timestamptz,
  result jsonb,
  CHECK ((measured_at IS NULL) = (result IS NULL))
) WITH (fillfactor = 50);
INSERT INTO measurement (name) VALUES ('webhooks'), ('deposits'), ('attention'), ('ledger_check');
GRANT SELECT, UPDATE ON measurement TO card_issuing_app, card_issuing_operator;
