import { sql } from 'kysely';
import { MAX_EACH, type Violation } from '../ledger/check-ledger.ts';
import { type Reader, readStatement } from '../platform/db/sql.ts';

/**
 * The number of the invariant: every posting has the row it is for, every such row its posting, and every
 * adjustment its audit entry.
 */
export const BOOKS_INVARIANT = 13;
/** The number of the invariant: what is counted (spending, clearings, an account's use) is the sum of its rows. */
export const COUNTERS_INVARIANT = 14;
/** The number of the invariant: a closed day's balances are what the transfers up to its end add up to. */
export const CLOSINGS_INVARIANT = 15;

/**
 * Compares adjustments, faucet credits, deposits, card loads, authorizations, withdrawals and settlements
 * with what the ledger has of them, both ways, counters with the rows they count, and closed days with the
 * transfers. Each kind is one statement, so it sees a consistent snapshot while work goes on: a row
 * and its posting are one transaction.
 * @param beforeEach is called before each statement
 * @param violations to which those that are found are added at once
 */
export async function checkBooks(
  em: Reader,
  beforeEach: () => Promise<void> = async () => {},
  violations: Violation[] = [],
): Promise<Violation[]> {
  const add = (invariant: number, found: readonly Omit<Violation, 'invariant'>[]) => {
    const known = violations.filter((violation) => violation.invariant === invariant).length;
    violations.push(...found.slice(0, MAX_EACH - known).map((one) => ({ invariant, ...one })));
  };
  for (const find of CHECKS) {
    await beforeEach();
    add(BOOKS_INVARIANT, await find(em, { maxRows: MAX_EACH }));
  }
  for (const find of [wrongTrueUps, unauditedAdjustments]) {
    await beforeEach();
    add(BOOKS_INVARIANT, await find(em, { most: MAX_EACH }));
  }
  await beforeEach();
  add(COUNTERS_INVARIANT, await wrongCounters(em, { checked: MAX_COUNTERS_CHECKED, most: MAX_EACH }));
  await beforeEach();
  add(COUNTERS_INVARIANT, await wrongSums(em, { most: MAX_EACH }));
  await beforeEach();
  add(CLOSINGS_INVARIANT, await wrongClosings(em, { most: MAX_EACH }));
  return violations;
}

const wrongClosings = readStatement(
  (_, { most }: { most: number }) => sql<Omit<Violation, 'invariant'>>`
    SELECT c.partner_id || ' ' || c.mode AS subject,
      'its closing of ' || to_char(c.day, 'YYYY-MM-DD') || ' leaves '
      || c.closing_cents || ' and ' || c.cards_closing_cents || ' on cards; the transfers leave ' || coalesce(b.prepaid, 0)
      || ' and ' || coalesce(b.cards, 0) AS message
    FROM day_closing c LEFT JOIN (
      SELECT t.partner_id, t.mode, date_trunc('day', t.created_at AT TIME ZONE 'UTC') AS day,
        sum(sum(CASE 'prepaid'::ledger.account_kind WHEN k.credit_kind THEN t.amount WHEN k.debit_kind THEN -t.amount ELSE 0 END)) OVER up_to AS prepaid,
        sum(sum(CASE 'card'::ledger.account_kind WHEN k.credit_kind THEN t.amount WHEN k.debit_kind THEN -t.amount ELSE 0 END)) OVER up_to AS cards
      FROM ledger.transfer t JOIN ledger.code k ON k.code = t.code
      WHERE t.phase IN ('single', 'post') GROUP BY 1, 2, 3
      WINDOW up_to AS (PARTITION BY t.partner_id, t.mode
      ORDER BY date_trunc('day', t.created_at AT TIME ZONE 'UTC'))
    ) b ON b.partner_id = c.partner_id AND b.mode = c.mode AND b.day = c.day
    WHERE (c.closing_cents, c.cards_closing_cents) IS DISTINCT FROM (b.prepaid, b.cards)
    ORDER BY 1, 2 LIMIT ${most}`,
  { acrossTenants: 'measurement' },
);

const wrongTrueUps = readStatement(
  (_, { most }: { most: number }) => sql<Omit<Violation, 'invariant'>>`
    SELECT coalesce(t.operation_id, m.operation_id) AS subject,
      'its ' || coalesce(t.code, 'release') || ' of '
      || coalesce(t.amount::text, 'nothing') || ' has a true-up of '
      || coalesce(m.amount_cents::text, 'nothing') || coalesce(', ' || m.direction, '') AS message
    FROM (
      SELECT id, code, operation_id, partner_id, mode, amount, substr(debit_id, 6) AS card_id,
        'from_card' AS direction
      FROM ledger.transfer WHERE code = 'block_release' AND mode = 'live'
      UNION ALL
      SELECT l.id, l.code, l.operation_id, l.partner_id, l.mode, l.amount, x.card_id,
        CASE l.code WHEN 'late_debit' THEN 'to_card' ELSE 'from_card' END
      FROM ledger.transfer l LEFT JOIN card_transaction x ON x.id = substr(l.operation_id, 8)
      WHERE l.code IN ('late_debit', 'late_refund') AND l.mode = 'live'
    ) t
    FULL JOIN true_up m ON m.transfer_id = t.id
    WHERE (t.amount, t.partner_id, t.mode, t.operation_id, t.card_id, t.direction)
        IS DISTINCT FROM (m.amount_cents, m.partner_id, m.mode, m.operation_id, m.card_id, m.direction)
    ORDER BY 1, 2 LIMIT ${most}`,
  { acrossTenants: 'measurement' },
);

/** The owner's login can book one without its entry, and take an entry away. */
const unauditedAdjustments = readStatement(
  (_, { most }: { most: number }) => sql<Omit<Violation, 'invariant'>>`
    SELECT b.id AS subject, 'this adjustment of ' || b.amount_cents || ' cents, ' || b.partner_id || ' ' || b.mode
      || coalesce(', by the login ' || b.login, '') || ', has no entry in the audit log' AS message
    FROM balance_adjustment b
    WHERE NOT EXISTS (
      SELECT FROM audit_entry a
      WHERE a.subject = b.partner_id AND a.detail ->> 'adjustmentId' = b.id
        AND a.action IN ('partner.adjust', 'adjustment.approve')
    )
    ORDER BY 1 LIMIT ${most}`,
  { acrossTenants: 'measurement' },
);

/** Others each time, because each adds up the rows of a card's interval. */
const MAX_COUNTERS_CHECKED = 10_000;

const wrongCounters = readStatement(
  (_, { checked, most }: { checked: number; most: number }) => sql<Omit<Violation, 'invariant'>>`
    SELECT c.card_id AS subject, 'its spending of ' || split_part(c.limit_key, ' ', 1) || ' since ' || c.starts_at
      || ' is counted as ' || c.net_cents || '; its authorizations and transactions say ' || s.cents AS message
    FROM (SELECT * FROM spending_counter ORDER BY random() LIMIT ${checked}) c
    CROSS JOIN LATERAL (SELECT spent_between(c.card_id, c.categories, real_time(c.partner_id, c.mode, c.starts_at),
      real_time(c.partner_id, c.mode, c.ends_at)) AS cents) s
    WHERE c.net_cents <> s.cents ORDER BY 1, 2 LIMIT ${most}`,
  { acrossTenants: 'measurement' },
);

/**
 * What is cleared of an authorization, which is nothing if it was declined, and what an account has used of its
 * limits.
 */
const wrongSums = readStatement(
  (_, { most }: { most: number }) => sql<Omit<Violation, 'invariant'>>`
    SELECT z.id AS subject, 'its settled_cents are ' || z.settled_cents || '; its clearings add up to '
      || coalesce(s.cents, 0) AS message
    FROM card_authorization z LEFT JOIN (
      SELECT authorization_id, sum(amount_cents) AS cents FROM card_transaction WHERE type = 'purchase' GROUP BY 1
    ) s ON s.authorization_id = z.id
    WHERE z.settled_cents <> coalesce(s.cents, 0)
    UNION ALL
    SELECT z.id, 'its settled_cents are ' || z.settled_cents || '; those of its payment are ' || y.cleared_cents
    FROM payment y JOIN card_authorization z ON z.id = y.authorization_id
    WHERE y.cleared_cents <> z.settled_cents AND z.status <> 'declined'
    UNION ALL
    SELECT u.partner_id || ' ' || u.mode, 'its open_cards are ' || u.open_cards || '; it has ' || coalesce(k.cards, 0)
    FROM account_usage u LEFT JOIN (
      SELECT partner_id, mode, count(*) AS cards FROM card
      WHERE status IN ('funding_pending', 'active', 'frozen') GROUP BY 1, 2
    ) k ON k.partner_id = u.partner_id AND k.mode = u.mode
    WHERE u.open_cards <> coalesce(k.cards, 0)
    UNION ALL
    SELECT u.partner_id || ' ' || u.mode, 'its loaded_cents of ' || u.loaded_on || ' are ' || u.loaded_cents
      || '; its loads add up to ' || coalesce(l.cents, 0)
    FROM account_usage u LEFT JOIN (
      SELECT partner_id, mode, counted_on, sum(cents) AS cents FROM (
        SELECT partner_id, mode, counted_on, funding_cents AS cents FROM card WHERE status <> 'failed'
        UNION ALL
        SELECT partner_id, mode, counted_on, amount_cents FROM card_transfer WHERE status <> 'failed'
      ) loads GROUP BY 1, 2, 3
    ) l ON l.partner_id = u.partner_id AND l.mode = u.mode AND l.counted_on = u.loaded_on
    WHERE u.loaded_cents <> coalesce(l.cents, 0)
    UNION ALL
    SELECT k.id, 'it is blocked, and of its ' || a.posted || ' cents ' || a.posted - a.held || ' are free'
    FROM card k JOIN ledger.account a ON a.card_id = k.id WHERE k.status = 'blocked' AND a.posted <> a.held
    ORDER BY 1, 2 LIMIT ${most}`,
  { acrossTenants: 'measurement' },
);

interface Book {
  /** The codes that are posted for these rows and for no others. */
  codes: string;
  /**
   * A query of what the rows say: operation_id, code, partner_id, mode, card account or NULL, cents posted,
   * cents held.
   */
  rows: string;
}

const differences = ({ codes, rows }: Book) =>
  readStatement(
    (_, { maxRows }: { maxRows: number }) => sql<Omit<Violation, 'invariant'>>`
      WITH said (operation_id, code, partner_id, mode, card, posted, held) AS (
        SELECT operation_id, code, min(partner_id), min(mode), min(card), sum(posted), sum(held)
        FROM (${sql.raw(rows)}) r (operation_id, code, partner_id, mode, card, posted, held)
        GROUP BY operation_id, code
      ), booked AS (
        SELECT t.operation_id, t.code, min(t.partner_id) AS partner_id, min(t.mode) AS mode,
          min(CASE WHEN t.credit_id LIKE 'card/%' THEN t.credit_id WHEN t.debit_id LIKE 'card/%' THEN t.debit_id END) AS card,
          sum(CASE WHEN t.phase IN ('single', 'post') THEN t.amount ELSE 0 END) AS posted,
          sum(CASE t.phase WHEN 'pending' THEN t.amount WHEN 'single' THEN 0 ELSE -p.amount END) AS held
        FROM ledger.transfer t LEFT JOIN ledger.transfer p ON p.id = t.pending_id
          WHERE t.code IN (${sql.raw(codes)})
        GROUP BY t.operation_id, t.code
      )
      SELECT operation_id AS subject, 'for ' || code || ' the ledger has '
        || coalesce(b.posted || ' posted and ' || b.held || ' held, ' || b.partner_id || ' ' || b.mode, 'nothing')
        || '; the row it is for says '
        || coalesce(s.posted || ' posted and ' || s.held || ' held, ' || s.partner_id || ' ' || s.mode, 'nothing') AS message
      FROM booked b FULL JOIN said s USING (operation_id, code)
      WHERE (coalesce(b.posted, 0), coalesce(b.held, 0)) <> (coalesce(s.posted, 0), coalesce(s.held, 0))
        OR ((b.posted <> 0 OR b.held <> 0)
        AND (b.partner_id, b.mode, b.card) IS DISTINCT FROM (s.partner_id, s.mode, s.card))
      ORDER BY 1, 2 LIMIT ${maxRows}`,
    { acrossTenants: 'measurement' },
  );

/** The code of a fee, by its type. */
const FEE = `CASE f.fee ->> 'type' WHEN 'card_activation' THEN 'fee_activation' ELSE 'fee_funding' END`;
const FEE_CENTS = `(f.fee ->> 'amount')::bigint`;

/** The operation and the code are SQL. */
const fundings = (operation: string, code: string, row: { table: string; card: string; cents: string }) => {
  const isHeld = `r.status IN ('funding_pending', 'pending')`;
  const isPosted = `r.status IN ('active', 'frozen', 'blocked', 'succeeded')`;
  return `
    SELECT ${operation} || '/' || r.id, ${code}, r.partner_id, r.mode, 'card/' || r.${row.card},
      CASE WHEN ${isPosted} THEN r.${row.cents} ELSE 0 END, CASE WHEN ${isHeld} THEN r.${row.cents} ELSE 0 END
    FROM ${row.table} r
    UNION ALL
    SELECT ${operation} || '/' || r.id, ${FEE}, r.partner_id, r.mode, NULL,
      CASE WHEN ${isPosted} THEN ${FEE_CENTS} ELSE 0 END, CASE WHEN ${isHeld} THEN ${FEE_CENTS} ELSE 0 END
    FROM ${row.table} r, jsonb_array_elements(r.fees) f (fee)`;
};

const BOOKS: readonly Book[] = [
  {
    codes: `'adjustment_credit', 'adjustment_debit'`,
    rows: `
      SELECT 'adjust/' || id, CASE WHEN amount_cents > 0 THEN 'adjustment_credit' ELSE 'adjustment_debit' END,
        partner_id, mode, NULL, abs(amount_cents), 0 FROM balance_adjustment`,
  },
  {
    codes: `'fund_faucet'`,
    rows: `SELECT 'faucet/' || id, 'fund_faucet', partner_id, mode, NULL, amount_cents, 0 FROM faucet_credit`,
  },
  {
    codes: `'fund_usdt', 'fund_test_usdt'`,
    // A payment that was in review is credited by its deposit's resolution.
    rows: `
      SELECT 'deposit/' || network || '/' || tx_hash || '/' || log_index || '/' || deposit_id,
        CASE mode WHEN 'live' THEN 'fund_usdt' ELSE 'fund_test_usdt' END, partner_id, mode,
        NULL, div(value_micro_usdt, 10000), 0
      FROM deposit_payment WHERE status = 'credited' AND review_reason IS NULL
      UNION ALL
      SELECT 'deposit/resolve/' || r.version || '/' || r.deposit_id,
        CASE d.mode WHEN 'live' THEN 'fund_usdt' ELSE 'fund_test_usdt' END, d.partner_id, d.mode,
        NULL, r.credited_cents, 0
      FROM deposit_resolution r JOIN deposit d ON d.id = r.deposit_id WHERE r.outcome = 'credited'`,
  },
  {
    codes: `'issue_load', 'topup', 'withdrawal', 'fee_activation', 'fee_funding'`,
    rows: `
      ${fundings(`'issue'`, `'issue_load'`, { table: 'card', card: 'id', cents: 'funding_cents' })}
      UNION ALL
      ${fundings('r.direction', 'r.direction', { table: 'card_transfer', card: 'card_id', cents: 'amount_cents' })}`,
  },
  {
    // What a card holds is what its pending authorizations hold, and each clearing takes its share of that.
    codes: `'authorization'`,
    rows: `
      SELECT 'auth/' || id, 'authorization', partner_id, mode, 'card/' || card_id, 0, held_cents FROM card_authorization
      UNION ALL
      SELECT 'auth/' || authorization_id, 'authorization', partner_id, mode, 'card/' || card_id, from_hold_cents, 0
      FROM card_transaction WHERE from_hold_cents > 0`,
  },
  {
    codes: `'purchase', 'refund', 'late_debit', 'late_refund', 'fee_transaction', 'fee_decline'`,
    rows: `
      SELECT 'settle/' || id, type, partner_id, mode, 'card/' || card_id,
        amount_cents - coalesce(partner_balance_cents, 0) - from_hold_cents, 0
      FROM card_transaction WHERE type <> 'decline' AND charged_to <> 'partner_balance'
      UNION ALL
      SELECT 'settle/' || id, CASE type WHEN 'refund' THEN 'late_refund' ELSE 'late_debit' END, partner_id, mode, NULL,
        coalesce(partner_balance_cents, amount_cents), 0
      FROM card_transaction WHERE type <> 'decline' AND charged_to <> 'card'
      UNION ALL
      SELECT 'settle/' || id, CASE type WHEN 'decline' THEN 'fee_decline' ELSE 'fee_transaction' END, partner_id, mode, NULL,
        (f.fee ->> 'amount')::bigint, 0
      FROM card_transaction, jsonb_array_elements(fees) f (fee)`,
  },
];

const CHECKS = BOOKS.map(differences);
