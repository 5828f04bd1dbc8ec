import { type Compilable, sql } from 'kysely';
import type { KeyRing } from '../../crypto/key-ring.ts';
import type { Transactor, Writes } from '../../db/sql.ts';
import { ApiError } from '../../domain/api-error.ts';
import { type Fee, insufficientFunds } from '../../domain/fees.ts';
import type { Mode } from '../../domain/mode.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { type LedgerResult, statementWithOperation } from '../../ledger/apply-operation.ts';
import { readBalance } from '../../ledger/balances.ts';
import { LedgerRejected } from '../../ledger/ledger-error.ts';
import type { LedgerOperation, Transfer, TransferCode } from '../../ledger/operation.ts';
import { requireStored } from '../idempotency/answer-once.ts';
import type { KeyedRequest } from '../idempotency/claim.ts';
import {
  claimOutcome,
  forRequests,
  type KeyedOutcomeValues,
  type Outcome,
  type OutcomeValues,
  outcomeOfClaim,
  outcomeOfRequest,
  requestOutcome,
} from '../idempotency/outcome.ts';
import { countFunding } from './terms.ts';

/** Money for a card, with its fees, from the prepaid balance. */
interface Funding {
  operationId: string;
  partnerId: string;
  mode: Mode;
  cardId: string;
  /** The step and the code of the transfer to the card. */
  load: { step: string; code: TransferCode };
  amountCents: number;
  fees: readonly Fee[];
}

/** A row as it is bound to a statement: JSON as text. */
type Bound<Row> = Omit<Row, 'fees'> & {
  fees: string;
  /** What the network is asked with, besides the row's fields; null if nobody is asked. */
  asked: string | null;
};

/** The table of a kind of funding. */
export interface FundingTable<Row> {
  /** How many open cards one funding adds. */
  newCards: 0 | 1;
  funding(row: Row): Funding;
  /**
   * An INSERT that returns partner_id, mode, loaded_cents and today, the UTC day it is counted on. It inserts nothing if the
   * external_ref is taken.
   * @param claimId the claim of a pending row; null for a row that is final at once
   */
  insert(db: Writes, row: Bound<Row>, claimId: string | null): Compilable;
  /** An UPDATE that ends a pending row and clears its claim. It returns partner_id and mode. */
  end(db: Writes, row: Bound<Row>): Compilable;
}

/** Writes the rows of one kind of funding, each in one statement with its money, since the account's other fundings wait. */
export interface FundingWriter<Row> {
  /**
   * Inserts a pending funding, counts it towards its account's limits and holds its money.
   * @param asked what the network is going to be asked with, besides the row's fields
   * @throws ApiError `external_ref_taken`, `insufficient_funds`, `validation_failed` (a balance would go past the largest
   * integer): roll back.
   */
  hold(tx: Transactor, claimId: string, row: Row, asked: object): Promise<void>;
  /** The same for a funding that is final at once: its money is moved, and its outcome is the request's response. */
  fund(tx: Transactor, ring: KeyRing, request: KeyedRequest, row: Row, outcome: Outcome): Promise<void>;
  /**
   * Ends a pending funding: posts or voids its hold, and writes its row and its outcome, which is the response to its claim
   * if there is none yet. The caller's transaction holds the claim and the row.
   * @throws LedgerConflict, LedgerRejected: roll back
   */
  end(tx: Transactor, ring: KeyRing, claimId: string, ended: Ended<Row>): Promise<void>;
}

interface Ended<Row> {
  /** As it will be written. */
  row: Row;
  phase: 'post' | 'void';
  outcome: Outcome;
}

export function fundingWriter<Row extends { fees: readonly Fee[] }>(
  table: FundingTable<Row>,
): FundingWriter<Row> {
  const newRow = (db: Writes, row: Bound<Row>, claimId: string | null) =>
    sql`done AS (${table.insert(db, row, claimId)}), counted AS (${countFunding(table.newCards)})`;
  const hold = statementWithOperation(
    (db, values: Bound<Row> & { claimId: string }, ledger) => sql<Made>`
      WITH ${newRow(db, values, values.claimId)} SELECT ${ledger.answer}, EXISTS (SELECT FROM done) AS made FROM ${ledger.call}`,
  );
  const fund = forRequests((isKeyed) =>
    statementWithOperation((db, values: Bound<Row> & KeyedOutcomeValues, ledger) => {
      const { ctes, isStored } = outcomeOfRequest(values, isKeyed);
      return sql<Made & { is_stored: boolean }>`
        WITH ${newRow(db, values, null)}, ${ctes}
        SELECT ${ledger.answer}, EXISTS (SELECT FROM done) AS made, ${isStored} AS is_stored FROM ${ledger.call}`;
    }),
  );
  const end = statementWithOperation(
    (db, values: Bound<Row> & OutcomeValues, ledger) => sql`
      WITH done AS (${table.end(db, values)}), ${outcomeOfClaim(values)} SELECT ${ledger.answer} FROM ${ledger.call}`,
  );
  const bound = (row: Row, asked: object | null): Bound<Row> => ({
    ...row,
    fees: JSON.stringify(row.fees),
    asked: asked && JSON.stringify(asked),
  });

  return {
    async hold(tx, claimId, row, asked) {
      const funding = table.funding(row);
      const operation = ledgerOperation(funding, 'pending');
      const held = await hold(tx, operation, { ...bound(row, asked), claimId }).catch(tooLarge);
      await requireMade(tx, funding, held);
    },
    async fund(tx, ring, request, row, outcome) {
      const values = { ...bound(row, null), ...requestOutcome(ring, request, outcome) };
      const funding = table.funding(row);
      const operation = ledgerOperation(funding, 'single');
      const result = await fund(request)(tx, operation, values).catch(tooLarge);
      await requireMade(tx, funding, result);
      requireStored(result.wrote.is_stored);
    },
    async end(tx, ring, claimId, { row, phase, outcome }) {
      const values = { ...bound(row, null), ...claimOutcome(ring, claimId, outcome) };
      await end(tx, ledgerOperation(table.funding(row), phase), values);
    },
  };
}

/** Whether the row was inserted. */
interface Made {
  made: boolean;
}

async function requireMade(
  tx: Transactor,
  { partnerId, mode, amountCents, fees }: Funding,
  { moved, wrote }: { moved: LedgerResult; wrote: Made },
): Promise<void> {
  if (!wrote.made) throw new ApiError('external_ref_taken');
  if (moved.outcome !== 'insufficient_funds') return;
  // The ledger has locked the balance, so this is what it decided on.
  const { availableCents } = await readBalance(tx, partnerId, mode);
  const totalDebitedCents = fees.reduce((sum, fee) => sum + fee.amount, amountCents);
  throw insufficientFunds(totalDebitedCents, availableCents);
}

function tooLarge(error: unknown): never {
  if (!(error instanceof LedgerRejected) || error.reason !== 'balance_out_of_range') throw error;
  throw ApiError.ofField(
    'amount',
    `amount would take a balance above the maximum of ${MAX_AMOUNT_CENTS} cents`,
  );
}

const FEE_CODES: Record<Fee['type'], TransferCode> = {
  card_activation: 'fee_activation',
  card_funding: 'fee_funding',
};

/**
 * The ledger's side of a funding in one phase: amount and fees held (`pending`), then all posted or all released
 * (`void`); or moved at once (`single`) if there is nothing to wait for. One operation id for all of them, so each phase
 * happens once.
 */
export function ledgerOperation(funding: Funding, phase: Transfer['phase']): LedgerOperation {
  const { operationId, partnerId, mode, cardId, load, amountCents, fees } = funding;
  const step = (name: string) =>
    phase === 'post' || phase === 'void'
      ? { step: `${name}:${phase}`, phase, resolves: name }
      : { step: name, phase };
  return {
    operationId,
    partnerId,
    mode,
    transfers: [
      { ...step(load.step), code: load.code, debit: 'prepaid', credit: { cardId }, amountCents },
      ...fees.map(
        (fee): Transfer => ({
          ...step(fee.type),
          code: FEE_CODES[fee.type],
          debit: 'prepaid',
          credit: 'fee_revenue',
          amountCents: fee.amount,
        }),
      ),
    ],
  };
}
