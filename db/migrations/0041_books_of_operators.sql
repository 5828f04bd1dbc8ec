-- Up Migration

-- The check of the ledger compares each posting with the row it is for, also when an operator runs it.
GRANT SELECT ON faucet_credit TO card_issuing_operator;
