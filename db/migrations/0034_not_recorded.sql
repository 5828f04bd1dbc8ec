-- Up Migration

-- Why the network's decision on a pending card or top-up could not be recorded: { reason, networkCardId?, at }. On a card in
-- use: why its id at the network could not be.
ALTER TABLE card ADD not_recorded jsonb;
ALTER TABLE topup ADD not_recorded jsonb;
GRANT UPDATE (not_recorded) ON card, topup TO card_issuing_app;
-- To correct the id that an operator gave a card that is blocked by now, which no worker looks up.
GRANT UPDATE (network_card_id) ON card TO card_issuing_operator;
