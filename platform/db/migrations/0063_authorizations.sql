-- Up Migration

-- Money that a merchant has asked a card for and not yet taken (docs/partners/authorizations.md). While it is pending, the
-- ledger has one hold of held_cents for it, in the operation auth/<id>.
CREATE TABLE card_authorization (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  -- The network's id for it; NULL if a partner made it in test mode.
  network_authorization_id text COLLATE "C",
  status text NOT NULL CHECK (status IN ('pending', 'declined', 'closed', 'reversed', 'expired')),
  -- What was authorized in total, what is held of it, and what was cleared, which may be more.
  amount_cents bigint NOT NULL CHECK (amount_cents >= 0),
  held_cents bigint NOT NULL CHECK (held_cents >= 0),
  settled_cents bigint NOT NULL CHECK (settled_cents >= 0),
  decline_reason text,
  merchant_name text,
  merchant_category_code text,
  merchant_city text,
  merchant_country text,
  -- [{ type, amount, approved, decline_reason, created }], the oldest first.
  requests jsonb NOT NULL,
  -- How many holds it has had; the ledger's steps are named after it.
  holds integer NOT NULL,
  expires_at timestamptz,
  created_at timestamptz NOT NULL,
  UNIQUE (id, partner_id, mode),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  CHECK ((status = 'pending') = (held_cents > 0)),
  CHECK ((status = 'declined') = (decline_reason IS NOT NULL)),
  CHECK ((status = 'declined') = (expires_at IS NULL)),
  CHECK (jsonb_array_length(requests) BETWEEN 1 AND 100)
);
CREATE UNIQUE INDEX card_authorization_of_network ON card_authorization (mode, network_authorization_id);
CREATE INDEX card_authorization_newest ON card_authorization (partner_id, mode, id);
CREATE INDEX card_authorization_newest_of_card ON card_authorization (card_id, id);
CREATE INDEX card_authorization_newest_of_status ON card_authorization (card_id, status, id);
CREATE INDEX card_authorization_due ON card_authorization (partner_id, mode, expires_at, id) WHERE status = 'pending';

-- What the card network said about authorizations, and what became of it: repeated under the same id, a message gets the
-- same response and changes nothing.
CREATE TABLE card_authorization_message (
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  message_id text COLLATE "C" NOT NULL,
  partner_id text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  type text NOT NULL CHECK (type IN ('authorization', 'increment', 'clearing', 'reversal', 'expiry')),
  -- The network's id of the authorization that it names.
  network_authorization_id text COLLATE "C",
  -- What it says. A reversal without an amount is of all that is left; only a clearing can be final.
  amount_cents bigint CHECK (amount_cents > 0),
  is_final boolean,
  -- What became of it. A clearing of an authorization that we don't know yet has none until its request arrives.
  authorization_id text COLLATE "C",
  transaction_id text COLLATE "C" REFERENCES card_transaction,
  decline_reason text,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (mode, message_id),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  FOREIGN KEY (authorization_id, partner_id, mode) REFERENCES card_authorization (id, partner_id, mode),
  CHECK ((type = 'clearing') = (is_final IS NOT NULL))
);
CREATE INDEX card_authorization_message_early ON card_authorization_message (mode, network_authorization_id)
  WHERE type = 'clearing' AND authorization_id IS NULL AND network_authorization_id IS NOT NULL;

-- A clearing is a purchase of an authorization. Its amount comes from the authorization's hold, then from what else is on the
-- card, then from the prepaid balance.
ALTER TABLE card_transaction ADD authorization_id text COLLATE "C";
ALTER TABLE card_transaction ADD from_hold_cents bigint NOT NULL DEFAULT 0;
-- What the prepaid balance paid, if both did.
ALTER TABLE card_transaction ADD partner_balance_cents bigint;
ALTER TABLE card_transaction ADD CONSTRAINT card_transaction_authorization
  FOREIGN KEY (authorization_id, partner_id, mode) REFERENCES card_authorization (id, partner_id, mode) NOT VALID;
-- The release before writes the first two of these.
ALTER TABLE card_transaction DROP CONSTRAINT card_transaction_charged_to_check;
ALTER TABLE card_transaction ADD CONSTRAINT card_transaction_charged_to_check
  CHECK (charged_to IN ('card', 'partner_balance', 'both')) NOT VALID;
ALTER TABLE card_transaction ADD CONSTRAINT card_transaction_shares
  CHECK ((charged_to = 'both') = (partner_balance_cents IS NOT NULL)
    AND coalesce(partner_balance_cents BETWEEN 1 AND amount_cents - 1, true)) NOT VALID;

-- Holds on cards. A clearing posts the authorization's; what it takes beyond that is a purchase or a late_debit.
INSERT INTO ledger.code (code, debit_kind, credit_kind, may_overdraw, may_hold, posted_by) VALUES
  ('authorization', 'card', 'network', false, true, '{card_issuing_api,card_issuing_worker,card_issuing_operator}'),
  ('withdrawal', 'card', 'prepaid', false, true, '{card_issuing_api,card_issuing_worker}');
-- What becomes free on a blocked card is released when a message says so. For the simulated network, an operator sends it.
UPDATE ledger.code SET posted_by = '{card_issuing_api,card_issuing_worker,card_issuing_operator}'
  WHERE code = 'block_release';

CREATE FUNCTION lock_test_card_terms(
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
    SELECT c.id, c.fingerprint, c.response_status, c.response_body, k, coalesce(a.posted, 0), coalesce(a.held, 0), z,
      coalesce((SELECT b.posted FROM ledger.account b WHERE b.id = 'prepaid/test/' || account), 0),
      p.fee_plan, p.limits, u.open_cards,
      -- Another transaction may have counted for a day that began after this one did.
      CASE WHEN u.loaded_on >= (now() AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END
    FROM partner p
    JOIN account_usage u ON u.partner_id = p.id AND u.mode = 'test'
    LEFT JOIN card k ON k.id = about_card AND k.partner_id = account AND k.mode = 'test'
    LEFT JOIN ledger.account a ON a.card_id = k.id
    LEFT JOIN card_authorization z ON z.id = about_authorization AND z.card_id = k.id
    LEFT JOIN idempotency_claim c ON c.partner_id = account AND c.mode = 'test' AND c.key = idempotency_key
    WHERE p.id = account;
END $$;

CREATE FUNCTION lock_authorization_terms(
  about_card text, about_authorization text, network_authorization text, network_message text, lock_wait_ms integer
) RETURNS TABLE (
  -- The card, its balance and what is held of that.
  card card,
  card_cents bigint,
  card_held_cents bigint,
  -- The authorization, whichever of the two ids names it.
  authorized card_authorization,
  -- What became of the message, if it is a repeated one; and the transaction that has its id.
  message card_authorization_message,
  transaction_id text,
  -- What was cleared of the authorization before its request arrived, and whether one of the clearings was final.
  cleared_cents bigint,
  is_cleared_finally boolean,
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
    SELECT k, coalesce(a.posted, 0), coalesce(a.held, 0), z, m,
      (SELECT t.id FROM card_transaction t WHERE t.mode = k.mode AND t.network_transaction_id = network_message),
      coalesce(e.cents, 0), coalesce(e.is_final, false),
      coalesce((SELECT b.posted FROM ledger.account b WHERE b.id = 'prepaid/' || k.mode || '/' || k.partner_id), 0),
      p.fee_plan
    FROM card k
    JOIN partner p ON p.id = k.partner_id
    LEFT JOIN ledger.account a ON a.card_id = k.id
    LEFT JOIN card_authorization z
      ON z.id = coalesce(about_authorization, (SELECT n.id FROM card_authorization n
        WHERE n.mode = k.mode AND n.network_authorization_id = network_authorization))
    LEFT JOIN card_authorization_message m ON m.mode = k.mode AND m.message_id = network_message
    LEFT JOIN LATERAL (
      SELECT sum(c.amount_cents)::bigint AS cents, bool_or(c.is_final) AS is_final FROM card_authorization_message c
      WHERE c.mode = k.mode AND c.network_authorization_id = network_authorization AND c.card_id = k.id
        AND c.type = 'clearing' AND c.authorization_id IS NULL
    ) e ON true
    WHERE k.id = about_card;
END $$;

-- Whose a row is and what it is about never change.
GRANT SELECT, INSERT ON card_authorization, card_authorization_message TO card_issuing_app, card_issuing_operator;
GRANT UPDATE (status, amount_cents, held_cents, settled_cents, requests, holds) ON card_authorization
  TO card_issuing_app, card_issuing_operator;
GRANT UPDATE (authorization_id) ON card_authorization_message, card_transaction TO card_issuing_app, card_issuing_operator;
GRANT EXECUTE ON FUNCTION lock_test_card_terms TO card_issuing_app;
GRANT EXECUTE ON FUNCTION lock_authorization_terms TO card_issuing_app, card_issuing_operator;
