-- The only writer of the ledger (docs/decisions/ledger-one-function.md). Applies operations in the order
-- given, each as a whole or not at all, and returns one row for each: outcome 'applied' | 'replayed' (the
-- same operation was applied before) | 'insufficient_funds' | 'conflict' (an id was used for something else)
-- | 'rejected' (reason says why) prepaid_posted, prepaid_held: the prepaid balance after it, in cents; NULL
-- if it touches none. request is a JSON array of ledger.step (operation_id to amount); steps with the same
-- `operation` belong together. What the rules forbid is an outcome, so it aborts neither the other operations
-- nor the caller's transaction. Only a request that can't be read as steps is an error. A unique violation
-- means that another transaction used an id first that was unused when this one looked: run the transaction
-- again. Who may post a code is in ledger.code.posted_by. The function runs with its owner's rights, so
-- current_user says nothing about the caller. It goes by the role that the session has set, or else by its
-- login: a session can only set a role that its login is a member of, and only a superuser can change
-- session_user. Whoever works as card_issuing_app may post what its login may.
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
    -- A transaction that has just opened the same account has also changed it. The insert has to fail then,
    -- not overwrite that.
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

GRANT EXECUTE ON FUNCTION ledger.apply_operations TO card_issuing_app, card_issuing_operator;
