import { CARD_COLUMNS, of } from '../../db/columns.ts';
import { readStatement, type Transactor, writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { Decision, WhyNot } from '../../domain/decision.ts';
import type { Fee } from '../../domain/fees.ts';
import type { Mode } from '../../domain/mode.ts';
import { applyOperation } from '../../ledger/apply-operation.ts';
import type { CardRow } from '../../resources/card.ts';
import type { CommandContext } from '../command-context.ts';
import { lockUsageAndClaim } from '../idempotency/claim.ts';
import { type Outcome, responseOf } from '../idempotency/outcome.ts';
import { type StoredResponse, storeError, storeResponse } from '../idempotency/response.ts';
import { type ClaimedTerms, uncountFunding } from './terms.ts';
import { type FundingTable, type FundingWriter, ledgerOperation } from './write-funding.ts';

/** The context of funding a card in live mode. */
export interface FundingContext extends CommandContext {
  /** Whether live mode has a card network. Without one, it can fund nothing. */
  liveNetworkConfigured: boolean;
}

/** The row that a funding creates: a card or a top-up. */
export interface FundingRow {
  id: string;
  partner_id: string;
  mode: Mode;
  status: string;
  fees: readonly Fee[];
}

/** A pending funding. The transaction holds its claim, card and row. */
interface PendingFunding<Row> {
  claimId: string;
  /** Whether its claim has a response. */
  answered: boolean;
  row: Row;
  /** The card it funds; for an issuance, the row itself. */
  card: CardRow;
  cardCents: number;
}

/**
 * What differs between the kinds of funding. Each holds money for a row that is pending until the network decides.
 * @typeParam Asked the request to the network
 * @typeParam Loaded the details in the network's yes
 * @typeParam Evidence what the network says about a card that an operator decides on
 */
export interface FundingKind<
  Row extends FundingRow,
  Asked = unknown,
  Loaded extends object = object,
  Failure extends string = string,
  Evidence = unknown,
  Terms extends ClaimedTerms = ClaimedTerms,
> extends FundingTable<Row> {
  table: 'card' | 'topup';
  pendingStatus: Row['status'];
  writer: FundingWriter<Row>;
  lockTerms(tx: Transactor, context: FundingContext, claimId: string): Promise<Terms | null>;
  /**
   * The pending row on these terms, the request to the network, and what of it the row's own fields do not say, which is kept.
   * @throws ApiError if it is refused
   */
  draft(
    tx: Transactor,
    context: FundingContext,
    terms: Terms,
  ): Promise<{ row: Row; asked: Asked; kept: object }>;
  /** Locks its row. @param card the card it funds, which the transaction holds; null if it holds none */
  lock(tx: Transactor, id: string, card: CardRow | null): Promise<{ row: Row; cardCents: number } | null>;
  /** The row of a funding that succeeded, or that failed. */
  loaded(pending: PendingFunding<Row>, loaded: Loaded): Row;
  failed(pending: PendingFunding<Row>, failure: Failure | 'operator_failed'): Row;
  /** The network's details if an operator decided that it succeeded, or why the decision can't be applied. */
  loadedByHand(tx: Transactor, row: Row, decision: Decision, evidence: Evidence): Promise<Loaded | WhyNot>;
  /** How it ended. @param row and card as they will be written */
  outcome(row: Row, card: CardRow): Outcome;
  /** As partners see it while it is pending. */
  present(row: Row, cardCents: number): object;
}

/**
 * `held`: the network decides next; `asked` is the request to it, or null if an earlier run made the hold. `answered`: the
 * operation is over and its claim has a response, which is included if this run stored it.
 */
type Begun<Asked> =
  | { state: 'held'; asked: Asked | null }
  | { state: 'answered'; response: StoredResponse | null };

/**
 * Begins a funding in live mode: the pending row and its hold. A refusal becomes the claim's response and leaves nothing else
 * behind. If it runs again for the same claim, it changes nothing and returns the same.
 */
export async function beginFunding<Row extends FundingRow, Asked>(
  kind: FundingKind<Row, Asked>,
  context: FundingContext,
  claimId: string,
): Promise<Begun<Asked>> {
  const { orm, ring } = context;
  try {
    return await transaction(orm, async (tx) => {
      const terms = await kind.lockTerms(tx, context, claimId);
      if (terms === null) return ANSWERED;
      if (terms.isPending) return HELD;
      if (terms.answered) return ANSWERED;
      const { row, asked, kept } = await kind.draft(tx, context, terms);
      await kind.writer.hold(tx, claimId, row, kept);
      return { state: 'held', asked };
    });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return transaction(orm, async (tx) => {
      const claim = await lockUsageAndClaim(tx, claimId);
      if (claim === null || claim.resource_id === null) return ANSWERED;
      // Another run of the same claim may have got further in the meantime, and its result stands.
      const found = await kind.lock(tx, claim.resource_id, null);
      if (found !== null) return found.row.status === kind.pendingStatus ? HELD : ANSWERED;
      return { state: 'answered', response: await storeError(tx, ring, claimId, error) };
    });
  }
}

const HELD = { state: 'held', asked: null } as const;
const ANSWERED = { state: 'answered', response: null } as const;

/**
 * Answers a funding that is still pending with 202. After this, a failure is a `failed` resource and an event instead of a
 * refusal.
 * @returns the response if this run stored it, as with the functions below
 */
export function acceptFunding<Row extends FundingRow>(
  kind: FundingKind<Row>,
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    const pending = await lockPending(kind, tx, claimId);
    if (pending === null) return null;
    return storeResponse(tx, ring, claimId, 202, kind.present(pending.row, pending.cardCents));
  });
}

/**
 * The network said yes: posts the hold, completes the row, writes the event, and answers the claim with 201 if it has no
 * response yet. A funding that is not pending is left as it is.
 */
export function completeFunding<Row extends FundingRow, Loaded extends object>(
  kind: FundingKind<Row, unknown, Loaded>,
  { orm, ring }: CommandContext,
  claimId: string,
  loaded: Loaded,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    const pending = await lockPending(kind, tx, claimId);
    return pending && endFunding(kind, tx, ring, pending, 'post', kind.loaded(pending, loaded));
  });
}

/**
 * The network definitely said no: releases every held cent. If the claim has no response yet, the refusal is its response,
 * 402 `provider_declined`, and no row is left behind; after a 202 the row is `failed` and an event says so (decisions.md,
 * "Resources"). A funding that is not pending is left as it is.
 */
export function failFunding<Row extends FundingRow, Failure extends string>(
  kind: FundingKind<Row, unknown, object, Failure>,
  { orm, ring }: CommandContext,
  claimId: string,
  failure: Failure,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    const pending = await lockPendingAndUsage(kind, tx, claimId);
    return pending && voidFunding(kind, tx, ring, pending, failure);
  });
}

/**
 * {@link failFunding} in the caller's transaction, which holds the account's usage and the pending funding.
 * @param refusal the response, if there is none yet
 */
export async function voidFunding<Row extends FundingRow, Failure extends string>(
  kind: FundingKind<Row, unknown, object, Failure>,
  tx: Transactor,
  ring: CommandContext['ring'],
  pending: PendingFunding<Row>,
  failure: Failure,
  refusal = new ApiError('provider_declined'),
): Promise<StoredResponse | null> {
  const { row, claimId, answered } = pending;
  const funding = kind.funding(row);
  await uncountFunding(tx, row, funding.amountCents, kind.newCards);
  if (answered) return endFunding(kind, tx, ring, pending, 'void', kind.failed(pending, failure));
  await applyOperation(tx, ledgerOperation(funding, 'void'));
  await REMOVE[kind.table](tx, { id: row.id });
  return storeError(tx, ring, claimId, refusal);
}

/** Ends a pending funding in the caller's transaction. @returns the response if there was none yet */
export async function endFunding<Row extends FundingRow>(
  kind: FundingKind<Row>,
  tx: Transactor,
  ring: CommandContext['ring'],
  { claimId, answered, card }: PendingFunding<Row>,
  phase: 'post' | 'void',
  row: Row,
): Promise<StoredResponse | null> {
  const outcome = kind.outcome(row, card);
  await kind.writer.end(tx, ring, claimId, { row, phase, outcome });
  return answered ? null : responseOf(outcome);
}

/** Locks a claim's pending funding: the claim, the card, the row. @returns null if it is not pending */
async function lockPending<Row extends FundingRow>(
  kind: FundingKind<Row>,
  tx: Transactor,
  claimId: string,
): Promise<PendingFunding<Row> | null> {
  const [locked] = await lockClaimAndCard(tx, { claimId });
  return pendingOf(kind, tx, claimId, locked);
}

/** Locks the account's usage, then does {@link lockPending}: for callers that uncount the funding. */
export async function lockPendingAndUsage<Row extends FundingRow>(
  kind: FundingKind<Row>,
  tx: Transactor,
  claimId: string,
): Promise<PendingFunding<Row> | null> {
  const [locked] = await lockUsageClaimAndCard(tx, { claimId });
  return pendingOf(kind, tx, claimId, locked);
}

async function pendingOf<Row extends FundingRow>(
  kind: FundingKind<Row>,
  tx: Transactor,
  claimId: string,
  locked: LockedCard | undefined,
): Promise<PendingFunding<Row> | null> {
  if (locked === undefined) return null;
  const { answered, resource_id: id, ...card } = locked;
  const found = id === null ? null : await kind.lock(tx, id, card);
  return found?.row.status === kind.pendingStatus ? { claimId, answered, card, ...found } : null;
}

/** A claim's card, the id of what the claim creates, and whether it has a response. */
type LockedCard = CardRow & { resource_id: string | null; answered: boolean };

/** Locks the claim, then the card: the one it is about or, for an issuance, the one it creates. */
const lockClaimAndCard = writeStatement((db, { claimId }: { claimId: string }) =>
  db
    .selectFrom('idempotency_claim as c')
    .innerJoin('card as k', (join) =>
      join.on('k.id', '=', ({ fn }) => fn.coalesce('c.card_id', 'c.resource_id')),
    )
    .select(of('k', CARD_COLUMNS))
    .select([
      'c.resource_id',
      (eb) => eb('c.response_status', 'is not', null).$castTo<boolean>().as('answered'),
    ])
    .where('c.id', '=', claimId)
    .forNoKeyUpdate(),
);

const lockUsageClaimAndCard = writeStatement((db, { claimId }: { claimId: string }) =>
  db
    .selectFrom('account_usage as u')
    .innerJoin('idempotency_claim as c', (join) =>
      join.onRef('c.partner_id', '=', 'u.partner_id').onRef('c.mode', '=', 'u.mode'),
    )
    .innerJoin('card as k', (join) =>
      join.on('k.id', '=', ({ fn }) => fn.coalesce('c.card_id', 'c.resource_id')),
    )
    .select(of('k', CARD_COLUMNS))
    .select([
      'c.resource_id',
      (eb) => eb('c.response_status', 'is not', null).$castTo<boolean>().as('answered'),
    ])
    .where('c.id', '=', claimId)
    .forNoKeyUpdate(),
);

/**
 * How a funding ended, according to its row.
 * @returns null if there is no row: it was refused, or failed before its request had a response
 */
export async function readFundingEnd(
  { orm }: Pick<CommandContext, 'orm'>,
  claimId: string,
): Promise<{ failure: string | null } | null> {
  const [row] = await endOfClaim(orm.em.fork(), { claimId });
  return row ?? null;
}

const endOfClaim = readStatement((db, { claimId }: { claimId: string }) =>
  db
    .selectFrom('idempotency_claim as c')
    .leftJoin('card as k', 'k.id', 'c.resource_id')
    .leftJoin('topup as t', 't.id', 'c.resource_id')
    .select(({ fn }) => fn.coalesce('k.failure_code', 't.failure_code').as('failure'))
    .where('c.id', '=', claimId)
    .where(({ eb, or }) => or([eb('k.id', 'is not', null), eb('t.id', 'is not', null)])),
);

const REMOVE = {
  card: writeStatement((db, { id }: { id: string }) => db.deleteFrom('card').where('id', '=', id)),
  topup: writeStatement((db, { id }: { id: string }) => db.deleteFrom('topup').where('id', '=', id)),
};
