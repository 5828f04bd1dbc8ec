import { setTimeout } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import { isRetryable } from '../platform/db/is-retryable.ts';
import { type StatementOptions, type Transactor, type Writes, writeStatement } from '../platform/db/sql.ts';
import { LedgerConflict, LedgerRejected, type RejectionReason } from './ledger-error.ts';
import { type Balance, type EncodedPosting, encodePosting, type Posting, toBalance } from './posting.ts';

/**
 * `replayed`: the same call was applied before, and this is its result. `prepaid` is the balance right after
 * the posting's last transfer that touches it, null if none does.
 */
export type LedgerResult =
  | { outcome: 'applied' | 'replayed'; prepaid: Balance | null }
  | { outcome: 'insufficient_funds' };

export type PostingOutcome = LedgerResult | LedgerConflict | LedgerRejected;

const MAX_ATTEMPTS = 10;

/**
 * Applies one posting, all or nothing, in one round trip, in the transaction of `tx`. Idempotent by operation
 * id and step: a retry has no second effect and returns the same result. Insufficient funds is a result too,
 * but leaves no trace, so a retry is decided anew.
 *
 * If PostgreSQL fails, the caller gets the error, has lost its transaction, and must run all of it again with
 * the same ids.
 * @throws LedgerConflict, LedgerRejected: nothing was applied, and the caller's transaction can continue.
 */
export async function applyPosting(tx: Transactor, posting: Posting): Promise<LedgerResult> {
  const [answer] = await applyPostings(tx, [encodePosting(posting)]);
  if (answer instanceof Error) throw answer;
  return answer as LedgerResult;
}

/**
 * Applies independent postings in one round trip, each all or nothing. The results are in the order of the
 * postings; if one fails, its error is its result and the others are not affected. With an EntityManager
 * outside a transaction, the call is its own transaction, and errors that isRetryable names are retried with
 * the same ids.
 * @throws PostgreSQL's errors, unchanged.
 */
export async function applyPostings(
  tx: Transactor,
  postings: readonly EncodedPosting[],
): Promise<PostingOutcome[]> {
  const request = toRequest(postings);
  for (let attempt = 1; ; attempt++) {
    try {
      const rows = await apply(tx, { request });
      return postings.map(({ operationId }, index) => toOutcome(operationId, rows[index]));
    } catch (error) {
      if (tx.isInTransaction() || attempt === MAX_ATTEMPTS || !isRetryable(error)) throw error;
      // A random pause, so that the transactions that deadlocked don't do so again at once.
      await setTimeout(Math.random() * attempt * 10);
    }
  }
}

/** Builds a statement from the joints of the ledger's call. */
type BuildWithLedger<Values, Wrote> = (
  db: Writes,
  values: Values,
  ledger: { answer: RawBuilder<unknown>; call: RawBuilder<unknown> },
) => RawBuilder<Wrote>;

/**
 * Creates one statement that writes rows and applies their posting in one round trip. If the posting moves
 * nothing, the rows are written all the same, and the caller has to roll back. The statement throws
 * LedgerConflict and LedgerRejected: roll back then too.
 * @param build writes `WITH <the rows> SELECT ${ledger.answer}, … FROM ${ledger.call}`
 */
export function statementWithPosting<Values extends object, Wrote>(
  build: BuildWithLedger<Values, Wrote>,
): (tx: Transactor, posting: Posting, values: Values) => Promise<{ moved: LedgerResult; wrote: Wrote }> {
  const run = statementWithPostings(build, {});
  return async (tx, posting, values) => {
    const { outcomes, wrote } = await run(tx, [posting], values);
    const [moved] = outcomes;
    if (moved instanceof Error) throw moved;
    return { moved: moved as LedgerResult, wrote };
  };
}

/**
 * Like {@link statementWithPosting}, for any number of postings, also none. The rows are written whatever
 * becomes of the postings, so the caller has to roll back if one is not applied.
 * @param build writes `WITH <the rows> SELECT ${ledger.answer}, … FROM (SELECT) one LEFT JOIN ${ledger.call}
 * ON true`
 */
export function statementWithPostings<Values extends object, Wrote>(
  build: BuildWithLedger<Values, Wrote>,
  options: StatementOptions,
): (
  tx: Transactor,
  postings: readonly Posting[],
  values: Values,
) => Promise<{ outcomes: PostingOutcome[]; wrote: Wrote }> {
  const run = writeStatement(
    (db, values: Values & { request: string }) =>
      build(db, values, { answer: ANSWER, call: callFunction(values) }),
    options,
  );
  return async (tx, postings, values) => {
    const rows = await run(tx, { ...values, request: toRequest(postings.map(encodePosting)) });
    const outcomes = postings.map(({ operationId }, index) =>
      toOutcome(operationId, rows[index] as OutcomeRow | undefined),
    );
    return { outcomes, wrote: rows[0] as Wrote };
  };
}

/** What `ledger.apply_operations` returns for each posting. */
interface OutcomeRow {
  outcome: LedgerResult['outcome'] | 'conflict' | 'rejected';
  reason: RejectionReason | null;
  prepaid_posted: string | null;
  prepaid_held: string | null;
}

const ANSWER = sql<OutcomeRow>`outcome, reason, prepaid_posted, prepaid_held`;
const callFunction = ({ request }: { request: string }) => sql`ledger.apply_operations(${request})`;

const apply = writeStatement(
  (_, values: { request: string }) => sql<OutcomeRow>`SELECT ${ANSWER} FROM ${callFunction(values)}`,
);

/** The postings as the function's one parameter. */
function toRequest(postings: readonly EncodedPosting[]): string {
  return JSON.stringify(
    postings.flatMap(({ steps }, operation) => steps.map((step) => ({ operation, ...step }))),
  );
}

function toOutcome(operationId: string, row: OutcomeRow | undefined): PostingOutcome {
  if (row === undefined) throw new Error('ledger.apply_operations returned no row for an operation');
  switch (row.outcome) {
    case 'conflict':
      return new LedgerConflict(operationId);
    case 'rejected':
      return new LedgerRejected(operationId, row.reason as RejectionReason);
    case 'insufficient_funds':
      return { outcome: row.outcome };
    case 'applied':
    case 'replayed':
      return { outcome: row.outcome, prepaid: toPrepaidBalance(row) };
  }
}

function toPrepaidBalance({ prepaid_posted: posted, prepaid_held: held }: OutcomeRow): Balance | null {
  return posted === null || held === null ? null : toBalance(posted, held);
}
