import { sql } from 'kysely';
import { API_ROLE, OPERATOR_ROLE, SERVICE_ROLE, WORKER_ROLE } from '../platform/db/login.ts';
import { type Reader, readStatement } from '../platform/db/sql.ts';

/** At most this many violations of each invariant are reported: the first few show what is wrong. */
export const MAX_EACH = 100;

export interface Violation {
  /** Its number, as in `ledger check` and the metric `ledger_check_violations`. */
  invariant: number;
  /** What violates it: an account, a transfer or an operation. */
  subject: string;
  message: string;
}

/**
 * Checks the invariants over the whole ledger, each in one statement, so each sees a consistent snapshot
 * while work goes on. PostgreSQL does the arithmetic; only violations are returned.
 * @param beforeEach is called before each statement
 * @param violations to which those that are found are added at once
 * @returns them: none if all hold. A violation is never repaired by changing rows: find the cause first.
 */
export async function checkLedger(
  em: Reader,
  beforeEach: () => Promise<void> = async () => {},
  violations: Violation[] = [],
): Promise<Violation[]> {
  for (const { invariant, find } of CHECKS) {
    await beforeEach();
    const rows = await find(em, { limit: MAX_EACH });
    violations.push(...rows.map((row) => ({ invariant, ...row })));
  }
  return violations;
}

const violationsThat = (finds: string) =>
  readStatement(
    (_, { limit }: { limit: number }) => sql<Omit<Violation, 'invariant'>>`
      SELECT v.subject, v.message FROM (${sql.raw(finds)}) v (subject, message)
      ORDER BY v.subject, v.message LIMIT ${limit}`,
    { acrossTenants: 'measurement' },
  );

interface Invariant {
  /** Its number. Number 12 is about processes, not rows. */
  invariant: number;
  /** A query whose rows are the violations: subject and message, both text. */
  finds: string;
}

const SIGNED = `CASE e.side WHEN 'credit' THEN e.amount ELSE -e.amount END`;
const MAX_CENTS = '9007199254740991';

/** Each is one statement with no parameters. A left join is used wherever the other row may be missing. */
const INVARIANTS: readonly Invariant[] = [
  {
    invariant: 1,
    finds: `
      SELECT a.partner_id || ' ' || a.mode, 'its entries add up to ' || sum(${SIGNED}) || ', not to 0'
      FROM ledger.entry e JOIN ledger.account a ON a.id = e.account_id
      GROUP BY a.partner_id, a.mode HAVING sum(${SIGNED}) <> 0`,
  },
  {
    invariant: 2,
    finds: `
      SELECT a.id, 'posted is ' || a.posted || ', its entries add up to ' || coalesce(s.cents, 0)
      FROM ledger.account a
        LEFT JOIN (SELECT e.account_id, sum(${SIGNED}) AS cents FROM ledger.entry e GROUP BY e.account_id) s
          ON s.account_id = a.id
      WHERE a.tracked AND a.posted <> coalesce(s.cents, 0)`,
  },
  {
    invariant: 3,
    finds: `
      SELECT c.account_id, 'entry number ' || c.account_version || ' of the chain leaves ' || c.balance_after
        || '; number ' || c.number || ' leaving ' || c.balance || ' was expected'
      FROM (SELECT e.account_id, e.account_version, e.balance_after, row_number() OVER w AS number,
          lag(e.balance_after, 1, 0::bigint) OVER w + ${SIGNED} AS balance
        FROM ledger.entry e WHERE e.account_version IS NOT NULL
        WINDOW w AS (PARTITION BY e.account_id ORDER BY e.account_version)) c
      WHERE c.account_version <> c.number OR c.balance_after IS DISTINCT FROM c.balance
      UNION ALL
      SELECT a.id, 'version is ' || a.version || ', it has ' || count(e.account_id) || ' entries, '
        || count(e.account_version) || ' of them in its chain'
      FROM ledger.account a LEFT JOIN ledger.entry e ON e.account_id = a.id
      GROUP BY a.id
      HAVING a.version <> count(e.account_version) OR (a.tracked AND a.version <> count(e.account_id))`,
  },
  {
    invariant: 4,
    finds: `
      SELECT a.id, 'held is ' || a.held || ', its unresolved pending transfers add up to ' || coalesce(s.cents, 0)
      FROM ledger.account a
        LEFT JOIN (SELECT p.debit_id, sum(p.amount) AS cents FROM ledger.transfer p
            WHERE p.phase = 'pending' AND NOT EXISTS (SELECT FROM ledger.transfer r WHERE r.pending_id = p.id)
            GROUP BY p.debit_id) s ON s.debit_id = a.id
      WHERE a.held <> coalesce(s.cents, 0)`,
  },
  {
    invariant: 5,
    finds: `
      SELECT r.pending_id::text, 'it is resolved ' || count(*) || ' times'
      FROM ledger.transfer r WHERE r.pending_id IS NOT NULL GROUP BY r.pending_id HAVING count(*) > 1
      UNION ALL
      SELECT r.id::text, 'this ' || r.phase || ' of ' || r.amount || ' does not fit what it resolves: '
        || coalesce(p.phase || ' of ' || p.amount || ', transfer ' || p.id, 'there is no such transfer')
      FROM ledger.transfer r LEFT JOIN ledger.transfer p ON p.id = r.pending_id
      WHERE r.phase IN ('post', 'void') AND (
        p.phase IS DISTINCT FROM 'pending' OR r.amount > p.amount OR (r.phase = 'void' AND r.amount <> p.amount)
        OR (r.operation_id, r.code, r.debit_id, r.credit_id) <> (p.operation_id, p.code, p.debit_id, p.credit_id))`,
  },
  {
    invariant: 6,
    finds: `
      SELECT t.id::text, t.code || ' took ' || a.id || ' to ' || t.prepaid_posted - t.prepaid_held
        || ', below its floor of ' || a.floor
      FROM ledger.transfer t JOIN ledger.account a ON a.id = t.debit_id JOIN ledger.code c ON c.code = t.code
      WHERE a.kind = 'prepaid' AND t.phase IN ('single', 'pending') AND NOT c.may_overdraw
        AND t.prepaid_posted - t.prepaid_held < a.floor
      UNION ALL
      SELECT a.id, 'its balance is below its floor of ' || a.floor
      FROM ledger.account a WHERE a.kind <> 'prepaid' AND a.posted - a.held < a.floor
      UNION ALL
      SELECT s.id::text, 'it says it left ' || coalesce(s.prepaid_posted || ' with ' || s.prepaid_held || ' held', 'nothing')
        || '; the transfers up to it leave ' || s.posted || ' with ' || s.held || ' held'
      FROM (SELECT t.id, t.prepaid_posted, t.prepaid_held,
          sum(CASE WHEN t.phase NOT IN ('single', 'post') THEN 0 WHEN a.id = t.credit_id THEN t.amount ELSE -t.amount END) OVER w AS posted,
          sum(CASE WHEN a.id <> t.debit_id THEN 0 WHEN t.phase = 'pending' THEN t.amount ELSE coalesce(-p.amount, 0) END)
            OVER w AS held
        FROM ledger.transfer t JOIN ledger.account a ON a.kind = 'prepaid' AND a.id IN (t.debit_id, t.credit_id)
          LEFT JOIN ledger.transfer p ON p.id = t.pending_id
        WINDOW w AS (PARTITION BY a.id ORDER BY t.seq)) s
      WHERE (s.prepaid_posted, s.prepaid_held) IS DISTINCT FROM (s.posted, s.held)`,
  },
  {
    invariant: 7,
    finds: `
      SELECT t.operation_id, 'its transfers are not those it was applied with: one was changed, removed or added'
      FROM ledger.transfer t GROUP BY t.operation_id, t.fingerprint
      HAVING t.fingerprint <> sha256(convert_to(string_agg(concat_ws(' ', t.operation_id, t.id, t.partner_id, t.mode,
        t.code, t.phase, t.debit_id, t.credit_id, t.amount, t.pending_id) || E'\\n', '' ORDER BY t.seq), 'UTF8'))`,
  },
  {
    invariant: 8,
    finds: `
      SELECT t.id::text, 'this ' || t.phase || ' transfer has ' || count(e.transfer_id) || ' entries'
      FROM ledger.transfer t LEFT JOIN ledger.entry e ON e.transfer_id = t.id
      GROUP BY t.id HAVING count(e.transfer_id) <> CASE WHEN t.phase IN ('single', 'post') THEN 2 ELSE 0 END
      UNION ALL
      SELECT e.transfer_id::text, 'its ' || e.side || ' entry on ' || e.account_id || ' does not match it'
      FROM ledger.entry e LEFT JOIN ledger.transfer t ON t.id = e.transfer_id
      WHERE e.account_id IS DISTINCT FROM CASE e.side WHEN 'debit' THEN t.debit_id ELSE t.credit_id END
        OR e.amount <> t.amount`,
  },
  {
    invariant: 9,
    finds: `
      SELECT t.id::text, t.code || ' from ' || t.debit_id || ' to ' || t.credit_id || ' is not allowed to '
        || t.partner_id || ' in mode ' || t.mode
      FROM ledger.transfer t LEFT JOIN ledger.code c ON c.code = t.code
        LEFT JOIN ledger.account d ON d.id = t.debit_id LEFT JOIN ledger.account k ON k.id = t.credit_id
      WHERE (d.partner_id, d.mode, d.kind, k.partner_id, k.mode, k.kind)
        IS DISTINCT FROM (t.partner_id, t.mode, c.debit_kind, t.partner_id, t.mode, c.credit_kind)
      UNION ALL
      SELECT a.id, 'its id does not match its kind, mode and partner or card' FROM ledger.account a
      WHERE a.id IS DISTINCT FROM
        CASE a.kind WHEN 'card' THEN 'card/' || a.card_id ELSE a.kind || '/' || a.mode || '/' || a.partner_id END`,
  },
  {
    invariant: 10,
    finds: `
      SELECT t.id::text, 'its amount is ' || t.amount
      FROM ledger.transfer t WHERE t.amount NOT BETWEEN 1 AND ${MAX_CENTS}
      UNION ALL
      SELECT e.transfer_id::text, 'the amount of its ' || e.side || ' entry is ' || e.amount
      FROM ledger.entry e WHERE e.amount NOT BETWEEN 1 AND ${MAX_CENTS}
      UNION ALL
      SELECT a.id, 'posted is ' || a.posted || ' and held is ' || a.held
      FROM ledger.account a WHERE abs(a.posted) > ${MAX_CENTS} OR a.held NOT BETWEEN 0 AND ${MAX_CENTS}`,
  },
  {
    invariant: 11,
    finds: `
      SELECT 'ledger.' || g.relation, 'its trigger ' || g.name || ' is missing or disabled'
      FROM (VALUES ('transfer', 'append_only'), ('entry', 'append_only'), ('account', 'never_removed'),
          ('transfer', 'balanced'), ('transfer', 'deposit_credit'), ('transfer', 'test_deposit_credit'), ('transfer', 'has_row'),
          ('entry', 'balanced')) g (relation, name)
      WHERE NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = ('ledger.' || g.relation)::regclass
        AND t.tgname = g.name AND t.tgenabled IN ('O', 'A'))
      UNION ALL
      SELECT i.inhrelid::regclass::text, 'its trigger ' || g.name || ' is missing or disabled'
      FROM pg_inherits i, (VALUES ('append_only'), ('balanced')) g (name)
      WHERE i.inhparent = 'ledger.entry'::regclass AND NOT EXISTS (SELECT FROM pg_trigger t
        WHERE t.tgrelid = i.inhrelid AND t.tgname = g.name AND t.tgenabled IN ('O', 'A'))
      UNION ALL
      SELECT 'ledger.' || r.relname, g.role || ' may change it'
      FROM pg_class r, (VALUES ('${SERVICE_ROLE}'), ('${API_ROLE}'), ('${WORKER_ROLE}'), ('${OPERATOR_ROLE}')) g (role)
      WHERE r.relnamespace = 'ledger'::regnamespace AND r.relkind IN ('r', 'p')
        AND has_table_privilege(g.role, r.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')`,
  },
];

/** The numbers of the invariants that are checked. */
export const INVARIANT_NUMBERS = INVARIANTS.map(({ invariant }) => invariant);

const CHECKS = INVARIANTS.map(({ invariant, finds }) => ({ invariant, find: violationsThat(finds) }));
