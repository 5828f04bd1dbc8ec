-- Up Migration

-- Pretend money, which a partner asks for in test mode.
CREATE TABLE faucet_credit (
  id text PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode = 'test'),
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX faucet_credit_recent ON faucet_credit (partner_id, created_at);

-- A manual credit (positive) or debit (negative) of the prepaid balance.
CREATE TABLE balance_adjustment (
  id text PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  amount_cents bigint NOT NULL CHECK (amount_cents <> 0),
  reason text NOT NULL,
  key text,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (partner_id, mode, key)
);

-- An adjustment that needs a second operator (docs/decisions/two-persons.md). The adjustment it becomes has the same
-- id.
CREATE TABLE adjustment_request (
  id text COLLATE "C" PRIMARY KEY,
  partner_id text NOT NULL REFERENCES partner,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  amount_cents bigint NOT NULL CHECK (amount_cents <> 0),
  reason text NOT NULL,
  key text,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'rejected')),
  requested_by text NOT NULL,
  requested_login text NOT NULL DEFAULT session_user,
  created_at timestamptz NOT NULL DEFAULT now(),
  decided_by text,
  decided_login text,
  decided_at timestamptz,
  decision_reason text,
  UNIQUE (partner_id, mode, key),
  CHECK ((status = 'pending') = (decided_at IS NULL)),
  CHECK (status <> 'approved' OR decided_by <> requested_by)
);
CREATE INDEX adjustment_request_pending ON adjustment_request (created_at) WHERE status = 'pending';

-- Above this amount, the database books no adjustment without an approved request. Only the owner sets it.
CREATE TABLE adjustment_limit (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  limit_cents bigint NOT NULL CHECK (limit_cents >= 0)
);

CREATE FUNCTION stamp_adjustment_request() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    NEW.requested_login := session_user;
    NEW.status := 'pending';
    NEW.decided_by := NULL;
    NEW.decided_login := NULL;
    NEW.decided_at := NULL;
  ELSE
    IF OLD.status <> 'pending' THEN
      RAISE EXCEPTION 'the request % was decided before', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    NEW.decided_login := session_user;
    NEW.decided_at := clock_timestamp();
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON adjustment_request
  FOR EACH ROW EXECUTE FUNCTION stamp_adjustment_request();

CREATE FUNCTION require_approval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM public.adjustment_limit WHERE abs(NEW.amount_cents) > limit_cents) AND NOT EXISTS (
    SELECT FROM public.adjustment_request r
    WHERE r.id = NEW.id AND r.status = 'approved' AND r.partner_id = NEW.partner_id AND r.mode = NEW.mode
      AND r.amount_cents = NEW.amount_cents) THEN
    RAISE EXCEPTION 'an adjustment of % cents needs an approved request', NEW.amount_cents
      USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER require_approval BEFORE INSERT ON balance_adjustment FOR EACH ROW EXECUTE FUNCTION require_approval();

-- The worker counts the requests that wait for a person.
GRANT SELECT ON faucet_credit, balance_adjustment, adjustment_request TO card_issuing_app;
GRANT INSERT ON faucet_credit TO card_issuing_api;

-- The check of the ledger compares each posting with the row it is for, also when an operator runs it.
GRANT SELECT ON faucet_credit, adjustment_limit TO card_issuing_operator;
GRANT SELECT, INSERT ON balance_adjustment, adjustment_request TO card_issuing_operator;
GRANT UPDATE (status, decided_by, decision_reason) ON adjustment_request TO card_issuing_operator;
