-- Up Migration

-- One use of an Idempotency-Key: the request, and its response once there is one. Both are sealed with the key ring,
-- because they can hold a cardholder's name.
CREATE TABLE idempotency_claim (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  -- NULL if the request had none but a workflow does its work. NULLs are never equal, so no other request finds this
  -- claim.
  key text,
  operation text NOT NULL,
  fingerprint bytea NOT NULL,
  request bytea,
  -- The Request-Id of the request that made the claim; error bodies have it.
  request_id text NOT NULL,
  -- Until then, the process that runs the request is taken to be alive.
  lease_expires_at timestamptz NOT NULL,
  response_status smallint,
  response_body bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- The card that the operation is about, if it existed before.
  card_id text COLLATE "C",
  -- If nobody seems to work on the claim: when a worker may next start its work, and how often one has. Set before each
  -- start, so that workers share the claims, and later each time.
  sweep_after timestamptz NOT NULL DEFAULT '-infinity',
  sweep_attempts integer NOT NULL DEFAULT 0,
  -- The id of what the request makes, chosen with the claim: whoever works on it makes the same card, top-up or
  -- deposit. NULL if it makes nothing.
  resource_id text COLLATE "C",
  -- Who sent the request: the API key's id and the address. NULL for an operator's.
  api_key_id text COLLATE "C",
  client_address text,
  UNIQUE (partner_id, mode, key),
  CHECK ((response_status IS NULL) = (response_body IS NULL))
);
CREATE INDEX idempotency_claim_age ON idempotency_claim (created_at);
CREATE INDEX idempotency_claim_to_sweep ON idempotency_claim (partner_id, mode, sweep_after, id)
  WHERE response_status IS NULL;
CREATE INDEX idempotency_claim_of_key ON idempotency_claim (api_key_id, id);

CREATE TABLE card (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  status text NOT NULL CHECK (status IN ('funding_pending', 'active', 'frozen', 'blocked', 'failed')),
  external_ref text NOT NULL,
  card_name text,
  cardholder_first_name text,
  cardholder_last_name text,
  email text,
  product_code text NOT NULL REFERENCES product,
  network text NOT NULL,
  network_card_id text,
  last4 text CHECK (last4 ~ '^[0-9]{4}$'),
  exp_month smallint CHECK (exp_month BETWEEN 1 AND 12),
  exp_year smallint,
  failure_code text,
  -- What the issuance puts on the card, and its fees: [{ type, amount }].
  funding_cents bigint NOT NULL CHECK (funding_cents > 0),
  fees jsonb NOT NULL,
  -- Since when the issuance has been past its deadline and has waited for an operator.
  overdue_since timestamptz,
  created_at timestamptz NOT NULL,
  -- The status change that is in progress; the next one waits until it is over.
  status_change_claim_id text COLLATE "C" REFERENCES idempotency_claim ON DELETE SET NULL,
  -- The UTC day whose loaded cents the funding counts towards. created_at is the time of the id, which may be the day
  -- before.
  counted_on date DEFAULT (now() AT TIME ZONE 'UTC')::date,
  -- An operator's decision on an issuance that the network doesn't confirm: { outcome, networkCardId?, refused? }. A
  -- worker carries it out. If it could not, refused says why, and the decision has no effect.
  decision jsonb,
  -- If a person said that the card was issued: when to ask the network next for its id and digits, until they are
  -- known.
  look_up_after timestamptz NOT NULL DEFAULT '-infinity',
  -- The claim whose work is in progress. NULL when that is over, so that a claim that is pruned has nothing to clear
  -- here, and the index has only pending cards.
  claim_id text COLLATE "C" REFERENCES idempotency_claim ON DELETE SET NULL,
  -- What the network was asked for besides the row's fields: { bin, named }. Under the same token it has to be asked
  -- for the same, so nobody may update this. NULL in test mode, where nobody is asked.
  asked jsonb,
  -- Why the network's decision on the card, or later its id there, could not be recorded: { reason, networkCardId?, at
  -- }.
  not_recorded jsonb,
  UNIQUE (id, partner_id, mode),
  CHECK ((status = 'failed') = (failure_code IS NOT NULL))
);
CREATE UNIQUE INDEX card_external_ref ON card (partner_id, mode, external_ref) WHERE status <> 'failed';
-- The network only knows its own card ids. If two of our cards had the same one, one would be charged for the other.
CREATE UNIQUE INDEX card_of_network ON card (network_card_id) WHERE mode = 'live';
CREATE UNIQUE INDEX card_claim ON card (claim_id) WHERE claim_id IS NOT NULL;
CREATE UNIQUE INDEX card_status_change_claim ON card (status_change_claim_id) WHERE status_change_claim_id IS NOT NULL;
CREATE INDEX card_pending ON card (created_at) WHERE status = 'funding_pending';
CREATE INDEX card_to_identify ON card (look_up_after)
  WHERE mode = 'live' AND status IN ('active', 'frozen') AND (network_card_id IS NULL OR last4 IS NULL);
-- Lists compare and order by whole keys (docs/decisions/lists-by-whole-keys.md), so all columns of an index go the same
-- way.
CREATE INDEX card_newest ON card (partner_id, mode, id);
CREATE INDEX card_newest_of_status ON card (partner_id, mode, status, id);
-- At most one card with an external_ref has not failed; any number may have.
CREATE INDEX card_newest_of_external_ref ON card (partner_id, mode, external_ref, status, id);

CREATE FUNCTION keep_asked_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the name on a card can''t be changed while the network is asked to issue it: wait until that is over'
    USING ERRCODE = 'check_violation', CONSTRAINT = 'card_name_asked';
END $$;
CREATE TRIGGER card_name_asked BEFORE UPDATE OF cardholder_first_name, cardholder_last_name ON card
  FOR EACH ROW
  WHEN (OLD.status = 'funding_pending' AND NEW.status = 'funding_pending' AND
    (OLD.cardholder_first_name, OLD.cardholder_last_name)
      IS DISTINCT FROM (NEW.cardholder_first_name, NEW.cardholder_last_name))
  EXECUTE FUNCTION keep_asked_name();

CREATE TABLE topup (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  status text NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
  failure_code text,
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  -- [{ type, amount }]
  fees jsonb NOT NULL,
  -- The card's balance when the top-up ended.
  card_balance_cents bigint,
  -- These are as in `card`; `asked` is { networkCardId }.
  overdue_since timestamptz,
  created_at timestamptz NOT NULL,
  completed_at timestamptz,
  counted_on date DEFAULT (now() AT TIME ZONE 'UTC')::date,
  decision jsonb,
  claim_id text COLLATE "C" REFERENCES idempotency_claim ON DELETE SET NULL,
  asked jsonb,
  not_recorded jsonb,
  UNIQUE (id, partner_id, mode),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  CHECK ((status = 'failed') = (failure_code IS NOT NULL)),
  CHECK ((status = 'pending') = (completed_at IS NULL)),
  CHECK ((status = 'pending') = (card_balance_cents IS NULL))
);
CREATE UNIQUE INDEX topup_claim ON topup (claim_id) WHERE claim_id IS NOT NULL;
CREATE INDEX topup_pending ON topup (created_at) WHERE status = 'pending';
CREATE INDEX topup_pending_of_card ON topup (card_id) WHERE status = 'pending';
CREATE INDEX topup_newest ON topup (partner_id, mode, id);
CREATE INDEX topup_newest_of_card ON topup (card_id, id);

-- Issuances and top-ups that have ended, but about which the network may still say something else: those that an
-- operator decided, and those that had a callback afterwards. A worker looks them up. The id is the card's or the
-- top-up's, which is the network's token.
CREATE TABLE late_answer (
  id text COLLATE "C" PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('card', 'topup')),
  -- Set if an operator decided it, even if a refusal deleted its row. The other three are a top-up's.
  partner_id text,
  card_id text COLLATE "C",
  amount_cents bigint,
  fees jsonb,
  look_up_after timestamptz NOT NULL DEFAULT now(),
  look_ups integer NOT NULL DEFAULT 0,
  -- What the network says that contradicts our record, its id of a card, and since when.
  said text CHECK (said IN ('yes', 'no')),
  network_card_id text,
  contradicts_since timestamptz,
  -- What an operator decided about that: { outcome: booked | dismissed, refused? }.
  decision jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((said IS NULL) = (contradicts_since IS NULL))
);
CREATE INDEX late_answer_due ON late_answer (look_up_after);
CREATE INDEX late_answer_contradiction ON late_answer (contradicts_since) WHERE contradicts_since IS NOT NULL;

-- One attempt to read a card's number. It counts towards the limit whether or not the network responded. It is also the
-- audit's record, and has no digit of the card.
CREATE TABLE card_reveal (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  api_key_id text NOT NULL REFERENCES api_key,
  request_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  client_address text,
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode)
);
CREATE INDEX card_reveal_recent ON card_reveal (partner_id, mode, created_at);
CREATE INDEX card_reveal_of_card ON card_reveal (card_id, created_at);

-- An attempt that was refused. It does not count towards the limit.
CREATE TABLE refused_reveal (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  -- What the request named, if it has the form of a card's id.
  card_id text COLLATE "C",
  api_key_id text NOT NULL,
  request_id text NOT NULL,
  client_address text NOT NULL,
  reason text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX refused_reveal_recent ON refused_reveal (partner_id, mode, created_at);
CREATE INDEX refused_reveal_of_card ON refused_reveal (card_id, created_at);

CREATE FUNCTION lock_funding_terms(claim text) RETURNS TABLE (
  partner_id text,
  mode text,
  -- Sealed.
  request bytea,
  answered boolean,
  -- What it makes, and whether an earlier run has already made it and it is pending.
  resource_id text,
  is_pending boolean,
  -- If it is about a card that existed before it: the card, its balance, and what pending top-ups would add.
  card_id text,
  card_cents bigint,
  arriving_cents numeric,
  fee_plan jsonb,
  limits jsonb,
  open_cards integer,
  loaded_today_cents bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM FROM account_usage u JOIN idempotency_claim c ON c.partner_id = u.partner_id AND c.mode = u.mode
    WHERE c.id = claim FOR NO KEY UPDATE;
  PERFORM FROM card k WHERE k.id = (SELECT c.card_id FROM idempotency_claim c WHERE c.id = claim) FOR NO KEY UPDATE;
  RETURN QUERY
    SELECT c.partner_id, c.mode, c.request, c.response_status IS NOT NULL, c.resource_id,
      EXISTS (SELECT FROM card k WHERE k.claim_id = claim) OR EXISTS (SELECT FROM topup t WHERE t.claim_id = claim),
      c.card_id,
      coalesce((SELECT a.posted FROM ledger.account a WHERE a.card_id = c.card_id), 0),
      coalesce((SELECT sum(o.amount_cents) FROM topup o WHERE o.card_id = c.card_id AND o.status = 'pending'), 0),
      p.fee_plan, p.limits, u.open_cards,
      -- Another transaction may have counted for a day that began after this one did.
      CASE WHEN u.loaded_on >= (now() AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END
    FROM idempotency_claim c
    JOIN partner p ON p.id = c.partner_id
    JOIN account_usage u ON u.partner_id = c.partner_id AND u.mode = c.mode
    WHERE c.id = claim;
END $$;

CREATE FUNCTION lock_test_terms(account text, idempotency_key text, about_card text, counts boolean) RETURNS TABLE (
  -- The claim with this key, and its response, sealed.
  claim_id text,
  fingerprint bytea,
  response_status smallint,
  response_body bytea,
  -- The card it is about, and its balance; NULL if the account has no such card.
  card card,
  card_cents bigint,
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
  IF about_card IS NOT NULL THEN
    PERFORM FROM card k WHERE k.id = about_card AND k.partner_id = account AND k.mode = 'test' FOR NO KEY UPDATE;
  END IF;
  RETURN QUERY
    SELECT c.id, c.fingerprint, c.response_status, c.response_body, k,
      coalesce((SELECT a.posted FROM ledger.account a WHERE a.card_id = about_card), 0),
      p.fee_plan, p.limits, u.open_cards,
      -- Another transaction may have counted for a day that began after this one did.
      CASE WHEN u.loaded_on >= (now() AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END
    FROM partner p
    JOIN account_usage u ON u.partner_id = p.id AND u.mode = 'test'
    LEFT JOIN card k ON k.id = about_card AND k.partner_id = account AND k.mode = 'test'
    LEFT JOIN idempotency_claim c ON c.partner_id = account AND c.mode = 'test' AND c.key = idempotency_key
    WHERE p.id = account;
END $$;

-- Whose a row is and what it is about never change. Any other column may be written; one that is added later needs a
-- grant of its own.
GRANT SELECT, INSERT, DELETE ON idempotency_claim, card, topup TO card_issuing_app;
GRANT UPDATE (lease_expires_at, response_status, response_body, sweep_after, sweep_attempts) ON idempotency_claim
  TO card_issuing_app;
GRANT UPDATE (status, card_name, cardholder_first_name, cardholder_last_name, email, network, network_card_id, last4,
  exp_month, exp_year, failure_code, overdue_since, status_change_claim_id, counted_on, decision, look_up_after, claim_id,
  not_recorded) ON card TO card_issuing_app;
GRANT UPDATE (status, failure_code, card_balance_cents, overdue_since, completed_at, counted_on, decision, claim_id,
  not_recorded) ON topup TO card_issuing_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON late_answer TO card_issuing_app;
GRANT SELECT ON card_reveal TO card_issuing_app;
GRANT INSERT ON card_reveal TO card_issuing_api;
GRANT SELECT, INSERT ON refused_reveal TO card_issuing_app;
GRANT EXECUTE ON FUNCTION lock_funding_terms, lock_test_terms TO card_issuing_app;

GRANT SELECT ON idempotency_claim, card, topup, late_answer, card_reveal, refused_reveal TO card_issuing_operator;
-- To seal again what is sealed with another key.
GRANT UPDATE (request, response_body) ON idempotency_claim TO card_issuing_operator;
-- Decisions; the erasure of a cardholder; and the right id at the network for a blocked card, which no worker looks up.
GRANT UPDATE (cardholder_first_name, cardholder_last_name, email, network_card_id, overdue_since, decision, look_up_after)
  ON card TO card_issuing_operator;
GRANT UPDATE (overdue_since, decision) ON topup TO card_issuing_operator;
GRANT UPDATE (look_up_after, decision) ON late_answer TO card_issuing_operator;
