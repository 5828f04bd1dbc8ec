-- Up Migration

-- Why the card network's last answer was none, for operators: its status and code, never a body. NULL if it answered.
ALTER TABLE idempotency_claim ADD network_problem text;
GRANT UPDATE (network_problem) ON idempotency_claim TO card_issuing_app;
