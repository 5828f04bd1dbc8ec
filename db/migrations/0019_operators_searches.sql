-- Up Migration

-- What operators look for in the audit: all about one thing, and all of one person's.
CREATE INDEX audit_entry_subject ON audit_entry (subject, at);
CREATE INDEX audit_entry_actor ON audit_entry (actor, at);
-- The reveals of one card. Those of one partner have card_reveal_recent.
CREATE INDEX card_reveal_of_card ON card_reveal (card_id, created_at);
