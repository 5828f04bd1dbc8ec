import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import { lowestId, newId } from '../../crypto/new-id.ts';
import type { Orm } from '../../db/orm.ts';
import {
  type CardNetwork,
  CardNetworkUnavailable,
  type ListedTransaction,
  type TransactionMessage,
} from '../../domain/card-network.ts';
import type { IdPrefix } from '../../domain/ids.ts';
import { describeError } from '../../process/describe-error.ts';
import { type Received, receiveTransaction } from '../settlement/receive-transaction.ts';
import { compareCards, type OurObject, type Page, readOurCards, type Verdict } from './compare-cards.ts';
import {
  compareMovements,
  readOurLoads,
  readOurTopUps,
  readOurTrueUps,
  readOurWithdrawals,
} from './compare-movements.ts';
import {
  compareTransactions,
  networkAuthorizationOf,
  readOurAuthorizations,
  readOurTransactions,
} from './compare-transactions.ts';
import { type Finding, findingKey, readKnownFindings, readOldestOpen, recordFindings } from './findings.ts';
import { forgetSeen, noteSeen } from './seen.ts';

/** How many listed objects are compared at a time, and how many of ours. */
const COMPARED_AT_ONCE = 200;
const READ_AT_ONCE = 1_000;
/** How often it says that it goes on. The network may give very few at a time. */
const GO_ON_EVERY_MS = 5_000;
/** A run notes no more than this, so that it needs no more memory for a million. */
const MAX_FINDINGS = 10_000;
/** The network's clock may be behind ours. */
const MAX_CLOCK_DIFFERENCE_MS = 600_000;

export interface ReconciliationOptions {
  receiving: Parameters<typeof receiveTransaction>[0];
  network: CardNetwork;
  /** CARD_NETWORK */
  cardNetwork: string;
  /** The period that is compared begins here, and ends now. */
  since: Date;
  /** How long what differs gets to become the same, before it is looked at again. */
  graceMs: number;
  signal: AbortSignal;
  /** Called again and again while it runs. */
  onProgress(): Promise<unknown>;
  logger: Logger;
}

export interface Reconciliation {
  matched: number;
  /** At most 10,000 altogether. */
  findings: Finding[];
  /** Those of `missing_here` that were booked, or kept, as if the network had told them now. */
  booked: Finding[];
  /** Whether there was more than is noted. */
  isTruncated: boolean;
}

/**
 * Compares cards, movements of money and transactions with the network's own lists, and records what differs for `attention list`.
 * What is under way differs for a moment, so only what still differs at a second look counts. Nothing is corrected but a transaction
 * that the network never told us, which is booked as if told now. It can end at any line and be begun again.
 * @throws CardNetworkUnavailable if the lists can't be read: then nothing is recorded
 */
export async function reconcile(options: ReconciliationOptions): Promise<Reconciliation> {
  const { receiving, cardNetwork, since, graceMs, signal } = options;
  const { orm } = receiving;
  const startedAt = new Date();
  const known = await readKnownFindings(orm, cardNetwork);
  const first = await compareAll(options, null);
  let last = first;
  if (first.isTruncated || [...first.findings.keys()].some((key) => !known.has(key))) {
    await setTimeout(graceMs, undefined, { signal });
    last = await compareAll(options, first);
  }
  const findings = [...last.findings]
    .filter(([key]) => first.isTruncated || first.findings.has(key))
    .map(([, finding]) => finding);
  const { matched, booked, isTruncated } = last;
  await recordFindings(orm, { network: cardNetwork, findings, since, startedAt, isTruncated });
  return { matched, findings, booked, isTruncated };
}

/** How the daily run's result is exported. */
export interface ReconciliationCounts {
  completedAt: string;
  durationSeconds: number;
  matched: number;
  booked: number;
  /** By the problem. */
  found: Record<Finding['problem'], number>;
}

export function countReconciliation(
  { matched, findings, booked }: Reconciliation,
  startedAt: Date,
): ReconciliationCounts {
  const count = (problem: Finding['problem']) => findings.filter((it) => it.problem === problem).length;
  return {
    completedAt: new Date().toISOString(),
    durationSeconds: (Date.now() - startedAt.getTime()) / 1_000,
    matched,
    booked: booked.length,
    found: {
      missing_here: count('missing_here'),
      missing_at_issuer: count('missing_at_issuer'),
      different: count('different'),
    },
  };
}

const DAY_MS = 86_400_000;

/** Where the period of a daily run begins: a week ago, or with what is open, for a month at most. */
export async function dailyPeriod(orm: Orm, cardNetwork: string): Promise<Date> {
  const weekAgoMs = Date.now() - 7 * DAY_MS;
  const openMs = (await readOldestOpen(orm, cardNetwork))?.getTime() ?? weekAgoMs;
  return new Date(Math.max(Math.min(weekAgoMs, openMs), Date.now() - 30 * DAY_MS));
}

interface Comparison {
  matched: number;
  /** By their keys. */
  findings: Map<string, Finding>;
  booked: Finding[];
  isTruncated: boolean;
}

/** @param before an earlier look: what it missed too was really never told, and is booked */
async function compareAll(options: ReconciliationOptions, before: Comparison | null): Promise<Comparison> {
  const { receiving, network, cardNetwork, since, signal } = options;
  const { orm } = receiving;
  const runId = newId('rec');
  const found: Comparison = { matched: 0, findings: new Map(), booked: [], isTruncated: false };
  const listedSince = new Date(since.getTime() - MAX_CLOCK_DIFFERENCE_MS);
  const goOn = async () => {
    signal.throwIfAborted();
    await options.onProgress();
  };
  const period = { runId, since, until: new Date(), goOn };
  const finish = async () => {
    await forgetSeen(orm, runId);
    return found;
  };

  for await (const cards of inBatches(network.listCards(listedSince), goOn)) {
    for (const verdict of await compareCards(orm, cards)) tally(found, verdict);
    await noteSeen(
      orm,
      runId,
      'card',
      cards.map(({ networkCardId }) => networkCardId),
    );
  }
  await findMissing(orm, found, { kind: 'card', prefix: 'card', read: readOurCards }, period);

  // If our ledger holds the money, the network has no movements.
  if (network.abilities.moneyHeldBy === 'network') {
    for await (const movements of inBatches(network.listMovements(listedSince), goOn)) {
      for (const verdict of await compareMovements(orm, movements)) tally(found, verdict);
      await noteSeen(
        orm,
        runId,
        'movement',
        movements.map(({ token }) => token),
      );
    }
    await findMissing(orm, found, { kind: 'movement', prefix: 'card', read: readOurLoads }, period);
    await findMissing(orm, found, { kind: 'movement', prefix: 'topup', read: readOurTopUps }, period);
    await findMissing(orm, found, { kind: 'movement', prefix: 'wdr', read: readOurWithdrawals }, period);
  }

  // The simulated network moves nothing back or after, and has no transactions of its own: operators send them.
  if (cardNetwork === 'simulated') return finish();
  if (network.abilities.moneyHeldBy === 'network') {
    await findMissing(orm, found, { kind: 'movement', prefix: 'ret', read: readOurTrueUps }, period);
    await findMissing(orm, found, { kind: 'movement', prefix: 'cov', read: readOurTrueUps }, period);
  }
  for await (const messages of inBatches(network.listTransactions(listedSince), goOn)) {
    const verdicts = await compareTransactions(orm, cardNetwork, messages);
    for (const [index, verdict] of verdicts.entries()) {
      const message = messages[index] as ListedTransaction;
      if (typeof verdict === 'object' && verdict.problem === 'missing_here' && wasMissing(before, verdict))
        await takeAsToldNow(options, found, message, verdict);
      else tally(found, verdict);
    }
    await noteSeen(
      orm,
      runId,
      'transaction',
      messages.map((it) => it.transaction.networkTransactionId),
    );
    await noteSeen(orm, runId, 'authorization', messages.map(networkAuthorizationOf));
  }
  await findMissing(orm, found, { kind: 'transaction', prefix: 'txn', read: readOurTransactions }, period);
  await findMissing(orm, found, { kind: 'transaction', prefix: 'auth', read: readOurAuthorizations }, period);
  return finish();
}

const wasMissing = (before: Comparison | null, finding: Finding): boolean =>
  before !== null && (before.isTruncated || before.findings.has(findingKey(finding)));

function tally(found: Comparison, verdict: Verdict): void {
  if (verdict === 'matched') found.matched += 1;
  else if (verdict !== 'under_way') {
    if (found.findings.size < MAX_FINDINGS) found.findings.set(findingKey(verdict), verdict);
    else found.isTruncated = true;
  }
}

/** Takes a transaction that the network never told us. If that fails, it is a finding. */
async function takeAsToldNow(
  { receiving, network, cardNetwork, logger }: ReconciliationOptions,
  found: Comparison,
  listed: ListedTransaction,
  finding: Finding,
): Promise<void> {
  const { networkTransactionId } = listed.transaction;
  let received: Received;
  try {
    const { body, transaction } = await readWhole(network, listed);
    received = await receiveTransaction(receiving, { network: cardNetwork, body, transaction }, () => {});
  } catch (error) {
    logger.error(
      { networkTransactionId, error: describeError(error) },
      'could not book a transaction that the card network never told us',
    );
    return tally(found, finding);
  }
  const id =
    'transactionId' in received
      ? received.transactionId
      : 'authorizationId' in received
        ? received.authorizationId
        : received.messageId;
  logger.warn({ networkTransactionId, id }, 'took a transaction that the card network never told us');
  if (found.booked.length < MAX_FINDINGS) found.booked.push({ ...finding, id });
  else found.isTruncated = true;
}

/** A listed transaction with all that booking it needs. */
async function readWhole(network: CardNetwork, listed: ListedTransaction): Promise<TransactionMessage> {
  if (listed.toRead === null) return listed;
  const { networkTransactionId } = listed.transaction;
  for (const told of await network.readEvent(listed.toRead)) {
    if (told.type === 'transaction' && told.transaction.networkTransactionId === networkTransactionId)
      return told;
  }
  throw new CardNetworkUnavailable('the card network lists a transaction and does not show it');
}

interface OurList {
  kind: Finding['kind'];
  prefix: IdPrefix;
  read(em: ReturnType<Orm['em']['fork']>, page: Page): Promise<OurObject[]>;
}

/** Finds which of ours in the period the network has not listed, a page at a time. */
async function findMissing(
  orm: Orm,
  found: Comparison,
  { kind, prefix, read }: OurList,
  period: { runId: string; since: Date; until: Date; goOn(): Promise<void> },
): Promise<void> {
  let after: string = lowestId(prefix, period.since);
  const until = lowestId(prefix, period.until);
  for (;;) {
    await period.goOn();
    const page = await read(orm.em.fork(), { runId: period.runId, after, until, limit: READ_AT_ONCE });
    for (const { id, issuer_id: issuerId, detail, is_missing: isMissing } of page) {
      if (isMissing) tally(found, { problem: 'missing_at_issuer', kind, id, issuerId, detail });
    }
    const last = page.at(-1);
    if (last === undefined || page.length < READ_AT_ONCE) return;
    after = last.id;
  }
}

/** Nothing of ours is held open while the network takes its time. */
async function* inBatches<Item>(
  items: AsyncIterable<Item>,
  goOn: () => Promise<void>,
): AsyncGenerator<Item[]> {
  let batch: Item[] = [];
  let wentOnMs = 0;
  for await (const item of items) {
    batch.push(item);
    if (performance.now() - wentOnMs > GO_ON_EVERY_MS) {
      wentOnMs = performance.now();
      await goOn();
    }
    if (batch.length < COMPARED_AT_ONCE) continue;
    yield batch;
    batch = [];
  }
  await goOn();
  if (batch.length > 0) yield batch;
}
