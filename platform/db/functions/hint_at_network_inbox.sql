-- Trigger of card, when a live card was issued or got its id at the network: tells the workers if something of
-- the network's waits for it. It notifies only then, because PostgreSQL commits transactions that notify one
-- after another.
CREATE OR REPLACE FUNCTION hint_at_network_inbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM network_inbox WHERE network_card_id = NEW.network_card_id) THEN
    PERFORM pg_notify('card_identified', NEW.network_card_id);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER hint_at_network_inbox AFTER UPDATE OF status, network_card_id ON card FOR EACH ROW
  WHEN (NEW.mode = 'live' AND NEW.network_card_id IS NOT NULL
  AND (OLD.network_card_id IS DISTINCT FROM NEW.network_card_id OR OLD.status = 'funding_pending'))
  EXECUTE FUNCTION hint_at_network_inbox();
