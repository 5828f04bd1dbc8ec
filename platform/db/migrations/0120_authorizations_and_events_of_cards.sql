-- Up Migration

-- GET /authorizations by status, and GET /events of a card. Where there are many, build these before the upgrade
-- (docs/operating.md#upgrading).
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS card_authorization_newest_of_status_of_all ON card_authorization (partner_id, mode, status, id);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS event_newest_of_card ON event (card_id, id);
