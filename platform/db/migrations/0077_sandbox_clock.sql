-- Up Migration

-- The sandbox clock: what time it is for an account's test mode (docs/decisions/sandbox-clock.md). Each row is an advance. An
-- account without a row lives in real time.
CREATE TABLE test_clock_advance (
  partner_id text COLLATE "C" NOT NULL REFERENCES partner,
  -- In real time, to the millisecond. No id of the account's that is older was given out afterwards.
  advanced_at timestamptz NOT NULL,
  seconds_before bigint NOT NULL CHECK (seconds_before >= 0),
  -- How far the clock is ahead of real time since then: all advances together.
  offset_seconds bigint NOT NULL CHECK (offset_seconds > seconds_before),
  -- What the clock showed right after it.
  shows timestamptz NOT NULL,
  PRIMARY KEY (partner_id, advanced_at)
);
CREATE UNIQUE INDEX test_clock_advance_shows ON test_clock_advance (partner_id, shows);
GRANT SELECT ON test_clock_advance TO card_issuing_app, card_issuing_operator;
GRANT INSERT ON test_clock_advance TO card_issuing_api;

CREATE OR REPLACE FUNCTION account_time(account text, of_mode text, at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE
RETURN CASE WHEN of_mode = 'test' THEN at + coalesce((
    SELECT c.offset_seconds * interval '1 second' FROM test_clock_advance c
    WHERE c.partner_id = account AND c.advanced_at <= at ORDER BY c.advanced_at DESC LIMIT 1
  ), interval '0') ELSE at END;

CREATE OR REPLACE FUNCTION account_now(account text, of_mode text) RETURNS timestamptz LANGUAGE sql STABLE
RETURN account_time(account, of_mode, now());

CREATE OR REPLACE FUNCTION real_time(account text, of_mode text, at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE
RETURN CASE WHEN of_mode = 'test' THEN least(
    at - coalesce((
      SELECT c.offset_seconds * interval '1 second' FROM test_clock_advance c
      WHERE c.partner_id = account AND c.shows <= at ORDER BY c.shows DESC LIMIT 1
    ), interval '0'),
    -- A time that the clock jumped over came when it jumped.
    (SELECT c.advanced_at FROM test_clock_advance c
      WHERE c.partner_id = account AND c.shows > at ORDER BY c.shows LIMIT 1)
  ) ELSE at END;

CREATE OR REPLACE FUNCTION read_test_clock(account text) RETURNS jsonb LANGUAGE sql STABLE
RETURN (
  SELECT jsonb_build_object('offsetSeconds', c.offset_seconds, 'secondsBefore', c.seconds_before,
    'advancedAtMs', (extract(epoch FROM c.advanced_at) * 1000)::bigint)
  FROM test_clock_advance c WHERE c.partner_id = account ORDER BY c.advanced_at DESC LIMIT 1
);

CREATE OR REPLACE FUNCTION lock_test_clock(account text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('test_clock/' || account, 0));
  -- In a statement of its own, which sees what was committed during the wait.
  RETURN read_test_clock(account);
END $$;

CREATE OR REPLACE FUNCTION lock_test_clock_alone(account text) RETURNS void LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock(hashtextextended('test_clock/' || account, 0))
$$;

GRANT EXECUTE ON FUNCTION account_time, account_now, real_time, read_test_clock, lock_test_clock
  TO card_issuing_app, card_issuing_operator;
GRANT EXECUTE ON FUNCTION lock_test_clock_alone TO card_issuing_api;

-- These take the time from there.
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
      CASE WHEN u.loaded_on >= (account_now(c.partner_id, c.mode) AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END
    FROM idempotency_claim c
    JOIN partner p ON p.id = c.partner_id
    JOIN account_usage u ON u.partner_id = c.partner_id AND u.mode = c.mode
    WHERE c.id = claim;
END $$;

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
      CASE WHEN u.loaded_on >= (account_now(account, 'test') AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END
    FROM partner p
    JOIN account_usage u ON u.partner_id = p.id AND u.mode = 'test'
    LEFT JOIN card k ON k.id = about_card AND k.partner_id = account AND k.mode = 'test'
    LEFT JOIN ledger.account a ON a.card_id = k.id
    LEFT JOIN card_authorization z ON z.id = about_authorization AND z.card_id = k.id
    LEFT JOIN idempotency_claim c ON c.partner_id = account AND c.mode = 'test' AND c.key = idempotency_key
    WHERE p.id = account;
END $$;

CREATE OR REPLACE FUNCTION lock_test_terms(account text, idempotency_key text, about_card text, counts boolean) RETURNS TABLE (
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
      CASE WHEN u.loaded_on >= (account_now(account, 'test') AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END
    FROM partner p
    JOIN account_usage u ON u.partner_id = p.id AND u.mode = 'test'
    LEFT JOIN card k ON k.id = about_card AND k.partner_id = account AND k.mode = 'test'
    LEFT JOIN idempotency_claim c ON c.partner_id = account AND c.mode = 'test' AND c.key = idempotency_key
    WHERE p.id = account;
END $$;

CREATE OR REPLACE FUNCTION read_spending(about card, account_controls jsonb, at timestamptz) RETURNS TABLE (
  source text,
  amount_cents bigint,
  every text,
  categories text[],
  limit_key text,
  -- NULL for a limit per authorization.
  starts_at timestamptz,
  ends_at timestamptz,
  net_cents bigint,
  -- Whether it has a counter for this interval.
  is_counted boolean
) LANGUAGE sql STABLE AS $$
  SELECT l.source, l.amount_cents, l.every, l.categories, l.limit_key, l.starts_at, l.ends_at,
    CASE WHEN l.every = 'per_authorization' THEN 0
      ELSE coalesce(c.net_cents, spent_between(about.id, l.categories,
        real_time(about.partner_id, about.mode, l.starts_at), real_time(about.partner_id, about.mode, l.ends_at))) END,
    l.every = 'per_authorization' OR c.card_id IS NOT NULL
  FROM (
    SELECT s.place AS source_place, s.source, e.place, (e.entry ->> 'amount')::bigint AS amount_cents,
      e.entry ->> 'interval' AS every, k.categories,
      (e.entry ->> 'interval') || coalesce(' ' || array_to_string(k.categories, ','), '') AS limit_key,
      CASE WHEN u.unit IS NOT NULL THEN date_trunc(u.unit, at, 'UTC')
        WHEN e.entry ->> 'interval' = 'all_time' THEN '-infinity' END AS starts_at,
      CASE WHEN u.unit IS NOT NULL
        THEN (date_trunc(u.unit, at AT TIME ZONE 'UTC') + ('1 ' || u.unit)::interval) AT TIME ZONE 'UTC'
        WHEN e.entry ->> 'interval' = 'all_time' THEN 'infinity' END AS ends_at
    FROM (VALUES (1, 'card', about.spending_controls), (2, 'account', account_controls)) s (place, source, controls)
    CROSS JOIN LATERAL jsonb_array_elements(
      CASE jsonb_typeof(s.controls -> 'spending_limits') WHEN 'array' THEN s.controls -> 'spending_limits' ELSE '[]' END
    ) WITH ORDINALITY e (entry, place)
    CROSS JOIN LATERAL (SELECT CASE e.entry ->> 'interval'
      WHEN 'daily' THEN 'day' WHEN 'weekly' THEN 'week' WHEN 'monthly' THEN 'month' WHEN 'yearly' THEN 'year' END) u (unit)
    CROSS JOIN LATERAL (SELECT CASE jsonb_typeof(e.entry -> 'categories') WHEN 'array' THEN
      ARRAY(SELECT code FROM jsonb_array_elements_text(e.entry -> 'categories') code ORDER BY code) END) k (categories)
  ) l
  LEFT JOIN spending_counter c ON c.card_id = about.id AND c.limit_key = l.limit_key AND c.starts_at = l.starts_at
  ORDER BY l.source_place, l.place
$$;

CREATE OR REPLACE FUNCTION ledger.apply_operations(request jsonb)
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
      credit_id, amount, prepaid_posted, prepaid_held, created_at)
    SELECT t.id, t.fingerprint, t.operation_id, t.partner_id, t.mode, t.code, t.phase, t.pending_id, t.debit_id,
      t.credit_id, t.amount, t.prepaid_posted, t.prepaid_held,
      CASE t.mode WHEN 'live' THEN clock_timestamp() ELSE public.account_time(t.partner_id, t.mode, clock_timestamp()) END
    FROM unnest(transfers) t;
  INSERT INTO ledger.entry (transfer_id, side, account_id, amount, balance_after, account_version)
    SELECT e.transfer_id, e.side, e.account_id, e.amount, e.balance_after, e.account_version FROM unnest(entries) e;
  UPDATE ledger.account a SET posted = n.posted, held = n.held, version = n.version
    FROM unnest(accounts) n
    WHERE a.id = n.id AND n.tracked AND (a.posted, a.held, a.version) IS DISTINCT FROM (n.posted, n.held, n.version);
END $$;
