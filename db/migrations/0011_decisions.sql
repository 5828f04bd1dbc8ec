-- Up Migration

-- When a worker may next start the work of a claim that nobody seems to be at, and how often one has: set before each
-- start, so that several workers share the claims, and later when it did not help.
ALTER TABLE idempotency_claim
  ADD sweep_after timestamptz NOT NULL DEFAULT '-infinity',
  ADD sweep_attempts integer NOT NULL DEFAULT 0,
  DROP swept_at;
CREATE INDEX idempotency_claim_to_sweep ON idempotency_claim (partner_id, mode, sweep_after, id)
  WHERE response_status IS NULL;
DROP INDEX idempotency_claim_unanswered;

-- What was decided about an operation whose network stays silent: { outcome, networkCardId?, refused? }. It is carried
-- out by a worker; refused says why the last one was not, and then it binds nobody.
ALTER TABLE card ADD decision jsonb;
ALTER TABLE topup ADD decision jsonb;

-- A card that was taken for issued on a person's word: the network is asked for its id and digits until they are known.
ALTER TABLE card ADD look_up_after timestamptz NOT NULL DEFAULT '-infinity';
CREATE INDEX card_to_identify ON card (look_up_after)
  WHERE mode = 'live' AND status IN ('active', 'frozen') AND (network_card_id IS NULL OR last4 IS NULL);
