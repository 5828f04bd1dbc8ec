-- Up Migration

-- squawk-ignore ban-drop-table
DROP TABLE topup, withdrawal;

-- Money that moves between the prepaid balance and a card: a top-up onto it, a withdrawal back from it. While it is pending,
-- the ledger holds it in the operation <direction>/<id>.
CREATE TABLE card_transfer (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL,
  mode text NOT NULL,
  card_id text COLLATE "C" NOT NULL,
  direction text NOT NULL COLLATE "C" CHECK (direction IN ('topup', 'withdrawal')),
  status text NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
  failure_code text,
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  -- [{ type, amount }] of a top-up
  fees jsonb NOT NULL DEFAULT '[]',
  -- The card's balance when it ended.
  card_balance_cents bigint,
  -- These are as in `card`; `asked` is { networkCardId }.
  overdue_since timestamptz,
  created_at timestamptz NOT NULL,
  completed_at timestamptz,
  -- Of a top-up: the UTC day whose usage it counts in.
  counted_on date,
  decision jsonb,
  claim_id text COLLATE "C" REFERENCES idempotency_claim ON DELETE SET NULL,
  asked jsonb,
  not_recorded jsonb,
  UNIQUE (id, partner_id, mode),
  FOREIGN KEY (card_id, partner_id, mode) REFERENCES card (id, partner_id, mode),
  CHECK ((status = 'failed') = (failure_code IS NOT NULL)),
  CHECK ((status = 'pending') = (completed_at IS NULL)),
  CHECK ((status = 'pending') = (card_balance_cents IS NULL)),
  CHECK (direction = 'topup' OR (fees = '[]' AND counted_on IS NULL))
);
CREATE UNIQUE INDEX card_transfer_claim ON card_transfer (claim_id) WHERE claim_id IS NOT NULL;
CREATE INDEX card_transfer_pending ON card_transfer (created_at) WHERE status = 'pending';
CREATE INDEX card_transfer_pending_topups ON card_transfer (card_id) WHERE direction = 'topup' AND status = 'pending';
CREATE INDEX card_transfer_newest ON card_transfer (partner_id, mode, direction, id);
CREATE INDEX card_transfer_newest_of_card ON card_transfer (card_id, direction, id);

CREATE TRIGGER card_transfer_operation AFTER UPDATE OF claim_id, overdue_since ON card_transfer FOR EACH ROW
  WHEN (OLD.claim_id IS NOT NULL
    AND (NEW.claim_id IS NULL OR (OLD.overdue_since IS NULL) <> (NEW.overdue_since IS NULL)))
  EXECUTE FUNCTION follow_operation();
CREATE CONSTRAINT TRIGGER audited AFTER UPDATE OF decision ON card_transfer DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (pg_has_role(session_user, 'card_issuing_operator', 'MEMBER')
    OR NOT pg_has_role(session_user, 'card_issuing_app', 'MEMBER'))
  EXECUTE FUNCTION require_audit('id');

-- Whose a row is and what it is about never change.
GRANT SELECT, INSERT, DELETE ON card_transfer TO card_issuing_app;
GRANT UPDATE (status, failure_code, card_balance_cents, overdue_since, completed_at, decision, claim_id, not_recorded)
  ON card_transfer TO card_issuing_app;
GRANT SELECT, UPDATE (overdue_since, decision) ON card_transfer TO card_issuing_operator;

CREATE OR REPLACE FUNCTION lock_funding_terms(claim text) RETURNS TABLE (
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
    WHERE c.id = claim AND c.operation <> 'withdraw_from_card' FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    PERFORM FROM idempotency_claim c WHERE c.id = claim FOR NO KEY UPDATE;
  END IF;
  PERFORM FROM card k WHERE k.id = (SELECT c.card_id FROM idempotency_claim c WHERE c.id = claim) FOR NO KEY UPDATE;
  RETURN QUERY
    SELECT c.partner_id, c.mode, c.request, c.response_status IS NOT NULL, c.resource_id,
      EXISTS (SELECT FROM card k WHERE k.claim_id = claim) OR EXISTS (SELECT FROM card_transfer t WHERE t.claim_id = claim),
      c.card_id,
      coalesce((SELECT a.posted FROM ledger.account a WHERE a.card_id = c.card_id), 0),
      coalesce((SELECT sum(o.amount_cents) FROM card_transfer o
        WHERE o.card_id = c.card_id AND o.direction = 'topup' AND o.status = 'pending'), 0),
      p.fee_plan, p.limits, u.open_cards,
      -- Another transaction may have counted for a day that began after this one did.
      CASE WHEN u.loaded_on >= (account_now(c.partner_id, c.mode) AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END
    FROM idempotency_claim c
    JOIN partner p ON p.id = c.partner_id
    JOIN account_usage u ON u.partner_id = c.partner_id AND u.mode = c.mode
    WHERE c.id = claim;
END $$;

CREATE OR REPLACE FUNCTION take_live_network(mine text) RETURNS TABLE (
  network text,
  open_cards bigint,
  open_operations bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  theirs text;
  cards bigint;
  operations bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('live_network', 0));
  theirs := (SELECT n.network FROM live_network n);
  IF theirs = mine THEN
    RETURN QUERY SELECT mine, 0::bigint, 0::bigint;
    RETURN;
  END IF;
  SELECT count(*) FILTER (WHERE k.status NOT IN ('blocked', 'failed')),
      count(*) FILTER (WHERE k.claim_id IS NOT NULL OR k.status_change_claim_id IS NOT NULL)
    INTO cards, operations FROM card k WHERE k.mode = 'live';
  operations := operations
    + (SELECT count(*) FROM card_transfer t WHERE t.mode = 'live' AND t.status = 'pending')
    + (SELECT count(*) FROM true_up u WHERE u.mode = 'live' AND u.status = 'pending');
  IF theirs IS NULL AND cards + operations > 0 THEN
    INSERT INTO live_network (network) VALUES (mine);
  ELSIF theirs IS NOT NULL AND cards + operations = 0 THEN
    UPDATE live_network SET network = mine;
  ELSIF theirs IS NOT NULL THEN
    RETURN QUERY SELECT theirs, cards, operations;
    RETURN;
  END IF;
  RETURN QUERY SELECT mine, 0::bigint, 0::bigint;
END $$;
