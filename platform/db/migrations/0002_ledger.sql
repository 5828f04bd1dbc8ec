-- Up Migration

-- Double entry, append-only, with apply_operations() as the only writer: docs/decisions/ledger-one-function.md says
-- why. The tables have few CHECKs and no foreign keys among them. Every call would pay for both, and the key-share
-- locks of foreign keys would make each of the platform's accounts a hot row.
CREATE SCHEMA ledger;

CREATE TYPE ledger.account_kind AS ENUM
  ('prepaid', 'card', 'network', 'fee_revenue', 'faucet', 'crypto_clearing', 'adjustment');
CREATE TYPE ledger.phase AS ENUM ('single', 'pending', 'post', 'void');
CREATE TYPE ledger.side AS ENUM ('debit', 'credit');

-- Tracked accounts have a balance, and a lock on their row. The balance of any other is the sum of its entries, so its
-- row is never hot.
CREATE TABLE ledger.account (
  -- <kind>/<mode>/<partnerId>, or card/<cardId>
  id text COLLATE "C" PRIMARY KEY,
  partner_id text COLLATE "C" NOT NULL,
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  kind ledger.account_kind NOT NULL,
  card_id text COLLATE "C",
  tracked boolean NOT NULL GENERATED ALWAYS AS (kind IN ('prepaid', 'card')) STORED,
  -- In cents: credits minus debits, and how much of that unresolved pending transfers reserve.
  posted bigint NOT NULL DEFAULT 0 CHECK (posted BETWEEN -9007199254740991 AND 9007199254740991),
  held bigint NOT NULL DEFAULT 0 CHECK (held BETWEEN 0 AND 9007199254740991),
  -- How many entries it has.
  version bigint NOT NULL DEFAULT 0,
  -- posted - held may not go below this, except with codes that may overdraw. No code overdraws a card.
  floor bigint NOT NULL DEFAULT 0,
  CHECK ((kind = 'card') = (card_id IS NOT NULL)),
  CONSTRAINT card_not_overdrawn CHECK (kind <> 'card' OR posted - held >= floor)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX account_card ON ledger.account (card_id) WHERE card_id IS NOT NULL;

-- The chart of accounts: which flows are allowed.
CREATE TABLE ledger.code (
  code text COLLATE "C" PRIMARY KEY,
  debit_kind ledger.account_kind NOT NULL,
  credit_kind ledger.account_kind NOT NULL,
  -- It may take the debited account below its floor.
  may_overdraw boolean NOT NULL,
  -- It may be pending first, then posted or voided.
  may_hold boolean NOT NULL,
  mode text CHECK (mode IN ('test', 'live')),
  posted_by text[] NOT NULL DEFAULT '{}',
  CHECK (debit_kind IN ('prepaid', 'card') OR credit_kind IN ('prepaid', 'card')),
  CHECK (NOT may_hold OR (debit_kind IN ('prepaid', 'card') AND NOT may_overdraw))
);
COMMENT ON COLUMN ledger.code.mode IS 'The one mode it may be used in; NULL: both.';
COMMENT ON COLUMN ledger.code.posted_by IS 'The roles whose logins may post it; none, unless it is said.';

-- The API runs the first tasks of the workflows it starts, so it posts what they post.
INSERT INTO ledger.code (code, debit_kind, credit_kind, may_overdraw, may_hold, posted_by) VALUES
  ('issue_load', 'prepaid', 'card', false, true, '{card_issuing_api,card_issuing_worker}'),
  ('topup', 'prepaid', 'card', false, true, '{card_issuing_api,card_issuing_worker}'),
  ('fee_activation', 'prepaid', 'fee_revenue', false, true, '{card_issuing_api,card_issuing_worker}'),
  ('fee_funding', 'prepaid', 'fee_revenue', false, true, '{card_issuing_api,card_issuing_worker}'),
  ('block_release', 'card', 'prepaid', false, false, '{card_issuing_api,card_issuing_worker}');
-- The API receives the network's transactions. For the simulated network, an operator sends them.
INSERT INTO ledger.code (code, debit_kind, credit_kind, may_overdraw, may_hold, posted_by) VALUES
  ('purchase', 'card', 'network', false, false, '{card_issuing_api,card_issuing_worker,card_issuing_operator}'),
  ('refund', 'network', 'card', false, false, '{card_issuing_api,card_issuing_worker,card_issuing_operator}'),
  ('fee_transaction', 'prepaid', 'fee_revenue', true, false, '{card_issuing_api,card_issuing_worker,card_issuing_operator}'),
  ('fee_decline', 'prepaid', 'fee_revenue', true, false, '{card_issuing_api,card_issuing_worker,card_issuing_operator}'),
  -- A purchase and a refund that reach a blocked card.
  ('late_debit', 'prepaid', 'network', true, false, '{card_issuing_api,card_issuing_worker,card_issuing_operator}'),
  ('late_refund', 'network', 'prepaid', false, false, '{card_issuing_api,card_issuing_worker,card_issuing_operator}');
-- Pretend money exists in test mode only, and money from a chain in live mode only.
INSERT INTO ledger.code (code, debit_kind, credit_kind, may_overdraw, may_hold, mode, posted_by) VALUES
  ('fund_faucet', 'faucet', 'prepaid', false, false, 'test', '{card_issuing_api}'),
  ('fund_usdt', 'crypto_clearing', 'prepaid', false, false, 'live', '{card_issuing_worker,card_issuing_operator}'),
  ('adjustment_credit', 'adjustment', 'prepaid', false, false, NULL, '{card_issuing_operator}'),
  ('adjustment_debit', 'prepaid', 'adjustment', false, false, NULL, '{card_issuing_operator}');

CREATE TABLE ledger.transfer (
  id uuid PRIMARY KEY,
  -- SHA-256 of all transfers of the operation. A retry has the same.
  fingerprint bytea NOT NULL,
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  operation_id text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  mode text NOT NULL,
  code text COLLATE "C" NOT NULL,
  phase ledger.phase NOT NULL,
  -- The pending transfer that a post or a void resolves.
  pending_id uuid,
  debit_id text COLLATE "C" NOT NULL,
  credit_id text COLLATE "C" NOT NULL,
  amount bigint NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
  -- The prepaid balance right after it, if it touches one. A retry gets the same again.
  prepaid_posted bigint,
  prepaid_held bigint,
  -- Transfers of an account are made one after the other, under its lock. Their transactions may have begun long
  -- before.
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The day of the transaction that made it, in UTC. A transfer and its entries have the same day, so that the entries
  -- of one transfer are in one partition, where the primary key sees them all.
  booked_on date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
  CHECK ((phase IN ('post', 'void')) = (pending_id IS NOT NULL))
);
CREATE UNIQUE INDEX transfer_resolves_once ON ledger.transfer (pending_id) WHERE pending_id IS NOT NULL;

-- Partitioned by year (docs/decisions/time-partitions.md). Nobody may drop a partition.
CREATE TABLE ledger.entry (
  transfer_id uuid NOT NULL,
  side ledger.side NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  amount bigint NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
  -- If the account is tracked: its balance after this entry, and the number of the entry in the account's chain.
  balance_after bigint,
  account_version bigint,
  booked_on date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
  PRIMARY KEY (transfer_id, side, booked_on)
) PARTITION BY RANGE (booked_on);
CREATE TABLE ledger.entry_default PARTITION OF ledger.entry DEFAULT;
DO $$
BEGIN
  EXECUTE format('CREATE TABLE ledger.entry_first PARTITION OF ledger.entry FOR VALUES FROM (MINVALUE) TO (%L)',
    (date_trunc('year', now() AT TIME ZONE 'UTC') + interval '1 year')::date);
END $$;
-- An account's chain is unique within each year. From one year to the next, the version in the account's row continues
-- it.
CREATE UNIQUE INDEX entry_default_chain ON ledger.entry_default (account_id, account_version)
  WHERE account_version IS NOT NULL;
-- squawk-ignore require-concurrent-index-creation -- The table is new: the block above creates it.
CREATE UNIQUE INDEX entry_first_chain ON ledger.entry_first (account_id, account_version) WHERE account_version IS NOT NULL;

CREATE FUNCTION ledger.deny_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'ledger.% is append-only, % is not allowed: correct it with another transfer', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER never_removed BEFORE DELETE OR TRUNCATE ON ledger.account
  FOR EACH STATEMENT EXECUTE FUNCTION ledger.deny_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.transfer
  FOR EACH STATEMENT EXECUTE FUNCTION ledger.deny_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.entry
  FOR EACH STATEMENT EXECUTE FUNCTION ledger.deny_change();
-- Also for statements that name a partition: partitions don't inherit triggers for each statement.
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.entry_default
  FOR EACH STATEMENT EXECUTE FUNCTION ledger.deny_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.entry_first
  FOR EACH STATEMENT EXECUTE FUNCTION ledger.deny_change();

CREATE FUNCTION ledger.check_transfer() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  expected integer := CASE WHEN NEW.phase IN ('single', 'post') THEN 2 ELSE 0 END;
  present integer;
BEGIN
  SELECT count(*) INTO present FROM ledger.entry e WHERE e.transfer_id = NEW.id AND e.booked_on = NEW.booked_on;
  IF present <> expected THEN
    RAISE EXCEPTION 'transfer % (%) has % entries, it needs %', NEW.id, NEW.phase, present, expected
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON ledger.transfer DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION ledger.check_transfer();

CREATE FUNCTION ledger.check_entry() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
  PERFORM FROM ledger.transfer t
    WHERE t.id = NEW.transfer_id AND t.phase IN ('single', 'post') AND t.amount = NEW.amount
      AND t.booked_on = NEW.booked_on
      AND NEW.account_id = CASE NEW.side WHEN 'debit' THEN t.debit_id ELSE t.credit_id END;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the % entry of transfer % does not match it', NEW.side, NEW.transfer_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON ledger.entry DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION ledger.check_entry();

CREATE FUNCTION ledger.check_deposit_credit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- deposit/<network>/<tx hash>/<log index>/<deposit>, or deposit/resolve/<version>/<deposit>
  part text[] := string_to_array(NEW.operation_id, '/');
BEGIN
  IF pg_has_role(session_user, current_user, 'MEMBER') THEN
    RETURN NULL;
  ELSIF part[2] = 'resolve' THEN
    PERFORM FROM public.deposit_resolution r JOIN public.deposit d ON d.id = r.deposit_id
      WHERE r.deposit_id = part[4] AND r.version::text = part[3] AND r.outcome = 'credited' AND r.credited_cents = NEW.amount
        AND d.partner_id = NEW.partner_id AND d.mode = NEW.mode AND r.xmin = pg_current_xact_id()::xid;
  ELSE
    PERFORM FROM public.deposit_payment p
      WHERE p.network = part[2] AND p.tx_hash = part[3] AND p.log_index::text = part[4] AND p.deposit_id = part[5]
        AND p.status = 'credited' AND p.value_micro_usdt = NEW.amount * 10000::numeric
        AND p.partner_id = NEW.partner_id AND p.mode = NEW.mode AND p.xmin = pg_current_xact_id()::xid;
  END IF;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'transfer % (fund_usdt) has no payment or resolution of % cents in its transaction', NEW.id, NEW.amount
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER deposit_credit AFTER INSERT ON ledger.transfer DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.code = 'fund_usdt') EXECUTE FUNCTION ledger.check_deposit_credit();

-- What apply_operations() works with. The row types of the tables would do, but it copies these often, so they are
-- small.
CREATE TYPE ledger.step AS (
  operation integer, operation_id text, partner_id text, mode text,
  id uuid, code text, phase ledger.phase, pending_id uuid, debit_id text, credit_id text, amount bigint,
  fingerprint bytea, prepaid_posted bigint, prepaid_held bigint
);
CREATE TYPE ledger.account_state AS (
  id text, partner_id text, mode text, kind ledger.account_kind, tracked boolean,
  posted bigint, held bigint, version bigint, floor bigint
);
-- Of a code: is_permitted says whether the caller may post it.
CREATE TYPE ledger.flow AS (
  code text, debit_kind ledger.account_kind, credit_kind ledger.account_kind, may_overdraw boolean, may_hold boolean,
  mode text, is_permitted boolean
);
CREATE TYPE ledger.new_entry AS (
  transfer_id uuid, side ledger.side, account_id text, amount bigint, balance_after bigint, account_version bigint
);

CREATE FUNCTION ledger.apply_operations(request jsonb)
RETURNS TABLE (outcome text, reason text, prepaid_posted bigint, prepaid_held bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Planned once in a session, and never as a scan of a table that was small at the time.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  max_cents CONSTANT bigint := 9007199254740991;
  steps ledger.step[];
  codes text[];
  chart ledger.flow[];
  account_ids text[];
  accounts ledger.account_state[];
  new_account_ids text[];
  -- Transfers the request names, then those it makes.
  transfer_ids uuid[];
  transfers ledger.step[];
  known integer;
  pending_ids uuid[];
  resolved_ids uuid[] := '{}';
  entries ledger.new_entry[] := '{}';
  -- What to return to if an operation fails midway.
  accounts_before ledger.account_state[];
  transfers_before integer;
  entries_before integer;
  resolved_before integer;
  first integer := 1;
  last integer;
  content text;
  digest bytea;
  step ledger.step;
  flow ledger.flow;
  known_at integer;
  debit_at integer;
  credit_at integer;
  debited ledger.account_state;
  credited ledger.account_state;
  hold ledger.step;
  caller name := CASE WHEN current_setting('role') IN ('none', 'card_issuing_app') THEN session_user
    ELSE current_setting('role') END;
  posts_as text[] := array_remove(ARRAY[
    CASE WHEN pg_has_role(caller, 'card_issuing_api', 'MEMBER') THEN 'card_issuing_api' END,
    CASE WHEN pg_has_role(caller, 'card_issuing_worker', 'MEMBER') THEN 'card_issuing_worker' END,
    CASE WHEN pg_has_role(caller, 'card_issuing_operator', 'MEMBER') THEN 'card_issuing_operator' END], NULL);
BEGIN
  SELECT array_agg(r), array_agg(r.code), array_agg(r.debit_id) || array_agg(r.credit_id), array_agg(r.id),
      array_agg(r.pending_id) FILTER (WHERE r.pending_id IS NOT NULL)
    INTO steps, codes, account_ids, transfer_ids, pending_ids
    FROM jsonb_populate_recordset(NULL::ledger.step, request) r;

  -- Lock first, in the order of ids. The statements after it see what was committed during the wait.
  PERFORM FROM ledger.account a WHERE a.id = ANY (account_ids) AND a.tracked ORDER BY a.id FOR NO KEY UPDATE;

  SELECT array_agg(f.code), array_agg(ROW(f.code, f.debit_kind, f.credit_kind, f.may_overdraw, f.may_hold, f.mode,
      f.posted_by && posts_as)::ledger.flow)
    INTO codes, chart
    FROM ledger.code f WHERE f.code = ANY (codes);

  SELECT array_agg(n.id), array_agg(CASE
      WHEN a.id IS NOT NULL
        THEN ROW(a.id, a.partner_id, a.mode, a.kind, a.tracked, a.posted, a.held, a.version, a.floor)::ledger.account_state
      -- Whoever uses a card's account first opens it.
      WHEN n.id LIKE 'card/%' THEN ROW(n.id, NULL, NULL, 'card', true, 0, 0, 0, 0)::ledger.account_state
      ELSE ROW(n.id, split_part(n.id, '/', 3), split_part(n.id, '/', 2), split_part(n.id, '/', 1),
        n.id LIKE 'prepaid/%', 0, 0, 0, 0)::ledger.account_state
      END),
      array_agg(n.id) FILTER (WHERE a.id IS NULL)
    INTO account_ids, accounts, new_account_ids
    FROM (SELECT DISTINCT unnest(account_ids)) n (id)
      LEFT JOIN ledger.account a ON a.id = n.id;

  SELECT coalesce(array_agg(t.id), '{}'), coalesce(array_agg(ROW(NULL, t.operation_id, t.partner_id, t.mode, t.id, t.code,
      t.phase, t.pending_id, t.debit_id, t.credit_id, t.amount, t.fingerprint, t.prepaid_posted, t.prepaid_held)::ledger.step), '{}')
    INTO transfer_ids, transfers
    FROM ledger.transfer t WHERE t.id = ANY (transfer_ids || pending_ids);
  known := cardinality(transfers);
  IF pending_ids IS NOT NULL THEN
    SELECT coalesce(array_agg(t.pending_id), '{}') INTO resolved_ids
      FROM ledger.transfer t WHERE t.pending_id = ANY (pending_ids);
  END IF;

  WHILE first <= cardinality(steps) LOOP
    last := first;
    content := '';
    WHILE last <= cardinality(steps) AND steps[last].operation = steps[first].operation LOOP
      step := steps[last];
      content := content || concat_ws(' ', step.operation_id, step.id, step.partner_id, step.mode, step.code, step.phase,
        step.debit_id, step.credit_id, step.amount, step.pending_id) || E'\n';
      last := last + 1;
    END LOOP;
    digest := sha256(convert_to(content, 'UTF8'));
    accounts_before := accounts;
    transfers_before := cardinality(transfers);
    entries_before := cardinality(entries);
    resolved_before := cardinality(resolved_ids);
    outcome := NULL;
    reason := NULL;
    prepaid_posted := NULL;
    prepaid_held := NULL;

    FOR i IN first .. last - 1 LOOP
      step := steps[i];
      known_at := array_position(transfer_ids, step.id);
      IF known_at IS NOT NULL OR outcome = 'replayed' THEN
        -- Either all of this operation was applied before, or another one used its id.
        IF known_at IS NULL OR known_at > transfers_before OR transfers[known_at].fingerprint <> digest THEN
          outcome := 'conflict';
          EXIT;
        END IF;
        outcome := 'replayed';
        prepaid_posted := coalesce(transfers[known_at].prepaid_posted, prepaid_posted);
        prepaid_held := coalesce(transfers[known_at].prepaid_held, prepaid_held);
        CONTINUE;
      END IF;

      flow := chart[array_position(codes, step.code)];
      debit_at := array_position(account_ids, step.debit_id);
      credit_at := array_position(account_ids, step.credit_id);
      debited := accounts[debit_at];
      credited := accounts[credit_at];
      debited.partner_id := coalesce(debited.partner_id, step.partner_id);
      debited.mode := coalesce(debited.mode, step.mode);
      credited.partner_id := coalesce(credited.partner_id, step.partner_id);
      credited.mode := coalesce(credited.mode, step.mode);
      reason := CASE
        WHEN flow.code IS NULL THEN 'unknown_code'
        WHEN NOT flow.is_permitted THEN 'not_permitted'
        WHEN debited.kind <> flow.debit_kind OR credited.kind <> flow.credit_kind THEN 'wrong_accounts'
        WHEN debited.partner_id <> step.partner_id OR credited.partner_id <> step.partner_id
          OR debited.mode <> step.mode OR credited.mode <> step.mode THEN 'other_owner'
        WHEN flow.mode <> step.mode THEN 'wrong_mode'
        WHEN step.phase = 'pending' AND NOT flow.may_hold THEN 'hold_not_allowed'
      END;
      EXIT WHEN reason IS NOT NULL;

      IF step.phase IN ('post', 'void') THEN
        hold := transfers[array_position(transfer_ids, step.pending_id)];
        reason := CASE
          WHEN hold.id IS NULL OR hold.phase <> 'pending' OR hold.operation_id <> step.operation_id THEN 'unknown_hold'
          WHEN hold.id = ANY (resolved_ids) THEN 'hold_resolved'
          WHEN hold.code <> step.code OR hold.debit_id <> step.debit_id OR hold.credit_id <> step.credit_id
            OR step.amount > hold.amount OR (step.phase = 'void' AND step.amount <> hold.amount) THEN 'hold_differs'
        END;
        EXIT WHEN reason IS NOT NULL;
        debited.held := debited.held - hold.amount;
        resolved_ids := resolved_ids || hold.id;
      ELSIF debited.tracked AND NOT flow.may_overdraw
        AND debited.posted - debited.held - step.amount < debited.floor THEN
        outcome := 'insufficient_funds';
        EXIT;
      END IF;

      IF step.phase = 'pending' THEN
        debited.held := debited.held + step.amount;
      ELSIF step.phase <> 'void' THEN
        IF debited.tracked THEN
          debited.posted := debited.posted - step.amount;
          debited.version := debited.version + 1;
        END IF;
        IF credited.tracked THEN
          credited.posted := credited.posted + step.amount;
          credited.version := credited.version + 1;
        END IF;
        IF debited.posted < -max_cents OR credited.posted > max_cents THEN
          reason := 'balance_out_of_range';
          EXIT;
        END IF;
        entries := entries
          || ROW(step.id, 'debit', debited.id, step.amount,
            CASE WHEN debited.tracked THEN debited.posted END, nullif(debited.version, 0))::ledger.new_entry
          || ROW(step.id, 'credit', credited.id, step.amount,
            CASE WHEN credited.tracked THEN credited.posted END, nullif(credited.version, 0))::ledger.new_entry;
      END IF;
      accounts[debit_at] := debited;
      accounts[credit_at] := credited;

      IF debited.kind = 'prepaid' THEN
        prepaid_posted := debited.posted;
        prepaid_held := debited.held;
        step.prepaid_posted := debited.posted;
        step.prepaid_held := debited.held;
      ELSIF credited.kind = 'prepaid' THEN
        prepaid_posted := credited.posted;
        prepaid_held := credited.held;
        step.prepaid_posted := credited.posted;
        step.prepaid_held := credited.held;
      END IF;
      step.fingerprint := digest;
      transfer_ids := transfer_ids || step.id;
      transfers := transfers || step;
    END LOOP;

    IF reason IS NOT NULL THEN
      outcome := 'rejected';
    END IF;
    outcome := coalesce(outcome, 'applied');
    IF outcome NOT IN ('applied', 'replayed') THEN
      accounts := accounts_before;
      transfer_ids := transfer_ids[:transfers_before];
      transfers := transfers[:transfers_before];
      entries := entries[:entries_before];
      resolved_ids := resolved_ids[:resolved_before];
      prepaid_posted := NULL;
      prepaid_held := NULL;
    END IF;
    RETURN NEXT;
    first := last;
  END LOOP;

  IF cardinality(transfers) = known THEN
    RETURN;
  END IF;
  transfers := transfers[known + 1:];
  IF new_account_ids IS NOT NULL THEN
    SELECT array_agg(n.id) INTO new_account_ids FROM unnest(new_account_ids) n (id)
      WHERE EXISTS (SELECT FROM unnest(transfers) t WHERE n.id IN (t.debit_id, t.credit_id));
    INSERT INTO ledger.account (id, partner_id, mode, kind)
      SELECT a.id, a.partner_id, a.mode, a.kind
      FROM unnest(accounts) a WHERE a.id = ANY (new_account_ids) AND NOT a.tracked ORDER BY a.id
      ON CONFLICT DO NOTHING;
    -- A transaction that has just opened the same account has also changed it. The insert has to fail then, not
    -- overwrite that.
    INSERT INTO ledger.account (id, partner_id, mode, kind, card_id)
      SELECT a.id, a.partner_id, a.mode, a.kind, CASE a.kind WHEN 'card' THEN substr(a.id, 6) END
      FROM unnest(accounts) a WHERE a.id = ANY (new_account_ids) AND a.tracked ORDER BY a.id;
  END IF;
  INSERT INTO ledger.transfer (id, fingerprint, operation_id, partner_id, mode, code, phase, pending_id, debit_id,
      credit_id, amount, prepaid_posted, prepaid_held)
    SELECT t.id, t.fingerprint, t.operation_id, t.partner_id, t.mode, t.code, t.phase, t.pending_id, t.debit_id,
      t.credit_id, t.amount, t.prepaid_posted, t.prepaid_held FROM unnest(transfers) t;
  INSERT INTO ledger.entry (transfer_id, side, account_id, amount, balance_after, account_version)
    SELECT e.transfer_id, e.side, e.account_id, e.amount, e.balance_after, e.account_version FROM unnest(entries) e;
  UPDATE ledger.account a SET posted = n.posted, held = n.held, version = n.version
    FROM unnest(accounts) n
    WHERE a.id = n.id AND n.tracked AND (a.posted, a.held, a.version) IS DISTINCT FROM (n.posted, n.held, n.version);
END $$;

GRANT USAGE ON SCHEMA ledger TO card_issuing_app, card_issuing_operator;
GRANT SELECT ON ledger.account, ledger.code, ledger.transfer, ledger.entry TO card_issuing_app, card_issuing_operator;
GRANT EXECUTE ON FUNCTION ledger.apply_operations TO card_issuing_app, card_issuing_operator;
