-- Up Migration

-- Payments (docs/decisions/payments.md): what the network said of each, and what we decided, beside what partners see of it.
CREATE TABLE payment (
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  -- The network's id; in test mode, its authorization's.
  payment_id text COLLATE "C" NOT NULL,
  partner_id text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  authorization_id text COLLATE "C" REFERENCES card_authorization,
  -- What the network said last, and every request with our decision and its word.
  said jsonb NOT NULL,
  requests jsonb NOT NULL,
  -- What was cleared of its authorization, or before that was known.
  cleared_cents bigint NOT NULL CHECK (cleared_cents >= 0),
  -- Our clock ended it, whatever the network holds.
  is_expired boolean NOT NULL,
  -- Of the simulated network: its messages, folded.
  folded jsonb,
  PRIMARY KEY (mode, payment_id),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode)
);
GRANT SELECT, INSERT ON payment TO card_issuing_app, card_issuing_operator;
GRANT UPDATE (authorization_id, said, requests, cleared_cents, is_expired, folded) ON payment TO card_issuing_app, card_issuing_operator;

-- What an element means that only a person could read; the audit log has who said so, and why.
CREATE TABLE payment_element (
  mode text NOT NULL CHECK (mode = 'live'),
  -- The network's id.
  element_id text COLLATE "C" NOT NULL,
  means text COLLATE "C" NOT NULL CHECK (means IN ('purchase', 'refund', 'nothing')),
  amount_cents bigint CHECK (amount_cents > 0),
  PRIMARY KEY (mode, element_id),
  CHECK ((means = 'nothing') = (amount_cents IS NULL))
);
GRANT SELECT ON payment_element TO card_issuing_app;
GRANT SELECT, INSERT ON payment_element TO card_issuing_operator;
GRANT UPDATE (means, amount_cents) ON payment_element TO card_issuing_operator;

-- What the network holds, which is more than our hold if the card lacked it: it counts towards spending limits.
ALTER TABLE card_authorization ADD target_cents bigint CHECK (target_cents >= held_cents);
GRANT UPDATE (target_cents) ON card_authorization TO card_issuing_app, card_issuing_operator;

-- One message can ask for money and take it, so that a request that we declined and its clearing have one id.
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX card_transaction_of_network;
-- squawk-ignore require-concurrent-index-creation
CREATE UNIQUE INDEX card_transaction_of_network ON card_transaction (mode, network_transaction_id, (type = 'decline'));

CREATE OR REPLACE TRIGGER card_authorization_counted AFTER INSERT OR UPDATE OF status, amount_cents, settled_cents, target_cents
  ON card_authorization FOR EACH ROW EXECUTE FUNCTION count_authorization();

-- How much of an authorization counts towards spending limits (docs/partners/spending-controls.md). A declined one counts nothing,
-- a pending one what was cleared and what the network holds, and one that has ended what was cleared.
CREATE OR REPLACE FUNCTION counted_cents(z card_authorization) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN CASE z.status
  WHEN 'declined' THEN 0
  WHEN 'pending' THEN coalesce(z.settled_cents + z.target_cents, greatest(z.amount_cents, z.settled_cents))
  ELSE z.settled_cents
END;

DROP FUNCTION lock_test_card_terms(text, text, text, text, boolean);
-- For an operation in test mode: locks the account's usage row (if the operation counts towards it), then the card it
-- is about, and returns everything it is decided on; no row if there is no such account. It is one call because the
-- account's other operations wait for every round trip under these locks. The locks have statements of their own: a
-- statement that waited for a lock doesn't see what was committed meanwhile, a later one does.
CREATE OR REPLACE FUNCTION lock_test_card_terms(
  account text, idempotency_key text, about_card text, about_authorization text, counts boolean
) RETURNS TABLE (
  -- The claim with this key, and its response, sealed.
  claim_id text,
  fingerprint bytea,
  response_status smallint,
  response_body bytea,
  -- The card it is about, its balance and what is held of that; NULL if the account has no such card.
  card card,
  card_cents bigint,
  card_held_cents bigint,
  -- The authorization it is about; NULL if the account has no such authorization.
  authorized card_authorization,
  -- Its payment.
  payment payment,
  -- The prepaid balance. It is not locked, so it may change at any time.
  prepaid_cents bigint,
  fee_plan jsonb,
  limits jsonb,
  open_cards integer,
  loaded_today_cents bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  IF counts THEN
    PERFORM FROM account_usage u WHERE u.partner_id = account AND u.mode = 'test' FOR NO KEY UPDATE;
  END IF;
  IF about_authorization IS NOT NULL THEN
    SELECT z.card_id INTO about_card FROM card_authorization z
      WHERE z.id = about_authorization AND z.partner_id = account AND z.mode = 'test';
  END IF;
  IF about_card IS NOT NULL THEN
    PERFORM FROM card k WHERE k.id = about_card AND k.partner_id = account AND k.mode = 'test' FOR NO KEY UPDATE;
  END IF;
  RETURN QUERY
    SELECT c.id, c.fingerprint, c.response_status, c.response_body, k, coalesce(a.posted, 0), coalesce(a.held, 0), z, y,
      coalesce((SELECT b.posted FROM ledger.account b WHERE b.id = 'prepaid/test/' || account), 0),
      p.fee_plan, p.limits, u.open_cards,
      -- Another transaction may have counted for a day that began after this one did.
      CASE WHEN u.loaded_on >= (account_now(account, 'test') AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END
    FROM partner p
    JOIN account_usage u ON u.partner_id = p.id AND u.mode = 'test'
    LEFT JOIN card k ON k.id = about_card AND k.partner_id = account AND k.mode = 'test'
    LEFT JOIN ledger.account a ON a.card_id = k.id
    LEFT JOIN card_authorization z ON z.id = about_authorization AND z.card_id = k.id
    LEFT JOIN payment y ON y.mode = 'test' AND y.payment_id = z.id
    LEFT JOIN idempotency_claim c ON c.partner_id = account AND c.mode = 'test' AND c.key = idempotency_key
    WHERE p.id = account;
END $$;
GRANT EXECUTE ON FUNCTION lock_test_card_terms TO card_issuing_app;

-- For a request of the network's about a card: locks the card, and returns everything that the request is decided on; no row if
-- there is no such card. It is one call, so that a decision takes one round trip under the lock. The lock has a statement of its own:
-- a statement that waited for a lock doesn't see what was committed meanwhile, a later one does. lock_wait_ms is how long to wait for
-- the lock; NULL for the session's limit.
CREATE OR REPLACE FUNCTION lock_payment_terms(about_card text, network_payment text, lock_wait_ms integer) RETURNS TABLE (
  -- The card, its balance and what is held of that.
  card card,
  card_cents bigint,
  card_held_cents bigint,
  -- The payment that the request is part of, and its authorization.
  payment payment,
  authorized card_authorization,
  -- The prepaid balance. It is not locked, so it may change at any time.
  prepaid_cents bigint,
  fee_plan jsonb
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  IF lock_wait_ms IS NOT NULL THEN
    PERFORM set_config('lock_timeout', lock_wait_ms::text, true);
  END IF;
  PERFORM FROM card k WHERE k.id = about_card FOR NO KEY UPDATE;
  RETURN QUERY
    SELECT k, coalesce(a.posted, 0), coalesce(a.held, 0), y, z,
      coalesce((SELECT b.posted FROM ledger.account b WHERE b.id = 'prepaid/' || k.mode || '/' || k.partner_id), 0),
      p.fee_plan
    FROM card k
    JOIN partner p ON p.id = k.partner_id
    LEFT JOIN ledger.account a ON a.card_id = k.id
    LEFT JOIN payment y ON y.mode = k.mode AND y.payment_id = network_payment
    LEFT JOIN card_authorization z ON z.id = y.authorization_id
    WHERE k.id = about_card;
END $$;
GRANT EXECUTE ON FUNCTION lock_payment_terms TO card_issuing_app, card_issuing_operator;
