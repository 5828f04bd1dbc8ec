-- Up Migration

-- Lists compare and order by whole keys (db/newest.ts), for which all columns of an index have to go the same way.
DROP INDEX event_newest, card_newest, card_newest_of_status, card_newest_of_external_ref, topup_newest_of_card,
  card_transaction_newest_of_card;
CREATE INDEX event_newest ON event (partner_id, mode, id);
CREATE INDEX card_newest ON card (partner_id, mode, id);
CREATE INDEX card_newest_of_status ON card (partner_id, mode, status, id);
-- Of one external_ref there is one card at most, and any number that failed.
CREATE INDEX card_newest_of_external_ref ON card (partner_id, mode, external_ref, status, id);
CREATE INDEX topup_newest_of_card ON topup (card_id, id);
CREATE INDEX card_transaction_newest_of_card ON card_transaction (card_id, id);

-- An account's events are listed by how they were delivered and by their type, by each alone or by both. One index
-- finds all of that, whichever is rare: so the type stands here too, and never changes.
ALTER TABLE delivery ADD type text COLLATE "C";
UPDATE delivery d SET type = e.type FROM event e WHERE e.id = d.event_id;
ALTER TABLE delivery ALTER type SET NOT NULL;
CREATE INDEX delivery_newest ON delivery (partner_id, mode, status, type, event_id);
DROP INDEX event_newest_of_type;

CREATE OR REPLACE FUNCTION queue_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO delivery (event_id, partner_id, mode, type, status)
    SELECT e.id, e.partner_id, e.mode, e.type, CASE WHEN w.partner_id IS NULL THEN 'no_endpoint' ELSE 'pending' END
    FROM written e LEFT JOIN webhook_endpoint w ON w.partner_id = e.partner_id AND w.mode = e.mode;
  RETURN NULL;
END $$;
