-- Up Migration

-- A card network's first request adds its row (docs/decisions/request-budget.md).
GRANT INSERT (network) ON request_budget TO card_issuing_app, card_issuing_operator;

-- What an issuer declined before we knew the authorization is not among its requests, and does not count for a request's place.
-- squawk-ignore require-concurrent-index-creation -- an operator has built it before, if the table is large
CREATE INDEX IF NOT EXISTS card_authorization_message_declined_early
  ON card_authorization_message (mode, network_authorization_id) WHERE type = 'decline' AND authorization_id IS NULL;
