-- Up Migration

-- An issuer tells what became of a request, decided here or by itself, and what an authorization's total is.
ALTER TABLE card_authorization_message DROP CONSTRAINT card_authorization_message_type_check;
ALTER TABLE card_authorization_message ADD CONSTRAINT card_authorization_message_type_check
  CHECK (type IN ('authorization', 'increment', 'clearing', 'reversal', 'expiry', 'approval', 'decline', 'total')) NOT VALID;

-- One that the issuer approved by itself is pending even if the card had nothing that it could hold.
ALTER TABLE card_authorization DROP CONSTRAINT card_authorization_check;
ALTER TABLE card_authorization ADD CONSTRAINT card_authorization_held CHECK (status = 'pending' OR held_cents = 0) NOT VALID;

-- The issuer may decide otherwise than we did, and says when an authorization expires, and later which clearing was the last.
GRANT UPDATE (decline_reason, expires_at) ON card_authorization TO card_issuing_app, card_issuing_operator;
GRANT UPDATE (decline_reason, transaction_id, is_final) ON card_authorization_message TO card_issuing_app, card_issuing_operator;
