import type { Logger } from 'pino';
import type { IdPrefix } from '../../domain/ids.ts';
import { lowestId, newId } from '../../platform/crypto/new-id.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import {
  type CardNetwork,
  CardNetworkUnavailable,
  isReadable,
  type ListedCard,
  type ListedMovement,
  type ListedTransaction,
  type TransactionMessage,
  type UnreadableObject,
} from '../card-network.ts';
import { type Received, receiveTransaction } from '../inbox/receive-transaction.ts';
import {
  type ChangedCard,
  compareCards,
  type OurObject,
  type Page,
  readChangedCards,
  readOpenCards,
  readOurCards,
  type Verdict,
} from './compare-cards.ts';
import { compareMovements, readOurLoads, readOurTransfers, readOurTrueUps } from './compare-movements.ts';
import {
  compareTransactions,
  networkAuthorizationOf,
  readOlderPayments,
  readOurAuthorizations,
  readOurTransactions,
} from './compare-transactions.ts';
import { type Finding, findingKey } from './findings.ts';
import { forgetSeen, noteSeen } from './seen.ts';

/** How many listed objects are compared at a time, and how many of ours. */
const COMPARED_AT_ONCE = 200;
const READ_AT_ONCE = 1_000;
/** A look reads no more cards than this by their ids, and no more than twice as many payments. */
const MAX_READ_BY_ID = 5_000;
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
  /** Called every few seconds while it runs, whatever it waits for. */
  onProgress(): Promise<unknown>;
  logger: Logger;
}

/** What a look has found. */
interface Comparison {
  matched: number;
  /** By their keys. */
  findings: Map<string, Finding>;
  booked: Finding[];
  isTruncated: boolean;
}

/** One look at both records. */
interface Look extends ReconciliationOptions {
  runId: string;
  /** An earlier look: what it missed too was really never told, and is booked. */
  before: Comparison | null;
  found: Comparison;
  listedSince: Date;
  until: Date;
  /** What was read by its id, with everything that it names; null if it could not be read. */
  payments: Map<string, ReadonlySet<string> | null>;
  /** How many payments were too many to be read. */
  unreadPayments: number;
}

/**
 * Looks once at all of both records: the network's lists, and what is older or not listed by its id.
 * @param before an earlier look
 * @throws CardNetworkUnavailable if the lists can't be read
 */
export async function compareAll(
  options: ReconciliationOptions,
  before: Comparison | null,
): Promise<Comparison> {
  const { receiving, network, cardNetwork, since } = options;
  const { orm } = receiving;
  const runId = newId('rec');
  const look: Look = {
    ...options,
    runId,
    before,
    found: { matched: 0, findings: new Map(), booked: [], isTruncated: false },
    listedSince: new Date(since.getTime() - MAX_CLOCK_DIFFERENCE_MS),
    until: new Date(),
    payments: new Map(),
    unreadPayments: 0,
  };
  await forgetSeen(orm, runId);
  try {
    await compareListedCards(look);
    // If our ledger holds the money, the network has no movements.
    if (network.abilities.moneyHeldBy === 'network') await compareListedMovements(look);
    // The simulated network has none of its own: operators send them.
    if (cardNetwork !== 'simulated') await compareListedTransactions(look);
    return look.found;
  } finally {
    await forgetSeen(orm, runId);
  }
}

async function compareListedCards(look: Look): Promise<void> {
  const { network, listedSince } = look;
  for await (const cards of inBatches(network.listCards(listedSince), look))
    await compareSomeCards(look, cards);
  await findMissing(look, { kind: 'card', prefix: 'card', read: readOurCards });
  await compareOlderCards(look);
}

async function compareSomeCards(
  { receiving: { orm }, found, runId }: Look,
  cards: readonly (ListedCard | UnreadableObject)[],
): Promise<void> {
  const listed = cards.filter(isReadable);
  for (const verdict of await compareCards(orm, listed)) tally(found, verdict);
  tallyUnreadable(found, 'card', cards);
  const ids = cards.map((card) => (isReadable(card) ? card.networkCardId : card.networkId));
  await noteSeen(orm, runId, 'card', ids);
}

/**
 * Reads by their ids the cards that were made before the period and whose status may differ: those that were
 * frozen, unfrozen or blocked in it, because a late request may have undone that, and those about which
 * something is open.
 */
async function compareOlderCards(look: Look): Promise<void> {
  const { receiving, cardNetwork: network, runId, since, until, signal } = look;
  const { orm } = receiving;
  const from = lowestId('claim', since);
  const olderThan = lowestId('card', since);
  let left = MAX_READ_BY_ID;
  const open = await readOpenCards(orm.em.fork(), { runId, network, olderThan, limit: left });
  left -= await compareCardsById(look, open);
  for (let before: string = lowestId('claim', until); left > 0; ) {
    signal.throwIfAborted();
    const page = await readChangedCards(orm.em.fork(), {
      runId,
      before,
      from,
      olderThan,
      limit: READ_AT_ONCE,
    });
    left -= await compareCardsById(look, page);
    const last = page.at(-1);
    if (last === undefined || page.length < READ_AT_ONCE) return;
    before = last.claim_id;
  }
  look.logger.warn('too many older cards have changed; those that changed last were compared');
}

/** @returns how many it has read */
async function compareCardsById(
  look: Look,
  cards: readonly Omit<ChangedCard, 'claim_id'>[],
): Promise<number> {
  const { network, found, signal } = look;
  const read = new Set<string>();
  for (const { id, network_card_id: issuerId, detail } of cards) {
    if (issuerId === null || detail === null || read.has(issuerId)) continue;
    read.add(issuerId);
    signal.throwIfAborted();
    const card = await network.readCard(issuerId);
    if (card !== null) await compareSomeCards(look, [card]);
    else tally(found, { problem: 'missing_at_issuer', kind: 'card', id, issuerId, detail });
  }
  return read.size;
}

async function compareListedMovements(look: Look): Promise<void> {
  const { receiving, network, cardNetwork, runId, found, listedSince } = look;
  const { orm } = receiving;
  for await (const movements of inBatches(network.listMovements(listedSince), look)) {
    const listed = movements.filter(isReadable);
    for (const verdict of await compareMovements(orm, listed)) tally(found, verdict);
    tallyUnreadable(found, 'movement', movements);
    await noteSeen(
      orm,
      runId,
      'movement',
      movements.map(({ token }) => token),
    );
  }
  await findMissing(look, { kind: 'movement', prefix: 'card', read: readOurLoads });
  await findMissing(look, { kind: 'movement', prefix: 'topup', read: readOurTransfers });
  await findMissing(look, { kind: 'movement', prefix: 'wdr', read: readOurTransfers });
  // The simulated network moves nothing back or after.
  if (cardNetwork === 'simulated') return;
  await findMissing(look, { kind: 'movement', prefix: 'tru', read: readOurTrueUps });
}

async function compareListedTransactions(look: Look): Promise<void> {
  const { receiving, network, cardNetwork, since, listedSince } = look;
  for await (const batch of inBatches(network.listTransactions(listedSince), look))
    await compareSomeTransactions(look, batch);
  const older = await readOlderPayments(receiving.orm.em.fork(), {
    network: cardNetwork,
    until: lowestId('auth', since),
    limit: MAX_READ_BY_ID,
  });
  for (const { id } of older) await comparePayment(look, id);
  await findMissing(look, { kind: 'transaction', prefix: 'txn', read: readOurTransactions });
  await findMissing(look, { kind: 'transaction', prefix: 'auth', read: readOurAuthorizations });
  const { unreadPayments } = look;
  if (unreadPayments > 0)
    look.logger.warn({ unreadPayments }, 'some older transactions were too many to be read and compared');
}

async function compareSomeTransactions(
  look: Look,
  batch: readonly (ListedTransaction | UnreadableObject)[],
): Promise<void> {
  const { receiving, cardNetwork, runId, before, found } = look;
  const { orm } = receiving;
  const messages = batch.filter(isReadable);
  const verdicts = await compareTransactions(orm, cardNetwork, messages);
  for (const [index, verdict] of verdicts.entries()) {
    const message = messages[index] as ListedTransaction;
    if (typeof verdict === 'object' && verdict.problem === 'missing_here' && wasMissing(before, verdict))
      await takeAsToldNow(look, found, message, verdict);
    else tally(found, verdict);
  }
  tallyUnreadable(found, 'transaction', batch);
  await noteSeen(
    orm,
    runId,
    'transaction',
    messages.map((it) => it.transaction.networkTransactionId),
  );
  const authorizations = batch.map((one) =>
    'unreadable' in one ? one.networkId : networkAuthorizationOf(one),
  );
  await noteSeen(orm, runId, 'authorization', authorizations);
}

/**
 * Reads what transactions are part of, and compares everything in it, once in a look.
 * @returns everything that it names; null if that can't be said
 */
async function comparePayment(look: Look, networkPaymentId: string): Promise<ReadonlySet<string> | null> {
  const { network, payments, signal } = look;
  const known = payments.get(networkPaymentId);
  if (known !== undefined) return known;
  if (payments.size >= 2 * MAX_READ_BY_ID) {
    look.unreadPayments += 1;
    return null;
  }
  signal.throwIfAborted();
  const payment = await network.readPayment(networkPaymentId);
  let named: Set<string> | null = new Set();
  if (payment !== null && 'unreadable' in payment) {
    await compareSomeTransactions(look, [payment]);
    named = null;
  } else if (payment !== null) {
    await compareSomeTransactions(look, payment);
    named.add(networkPaymentId);
    for (const { transaction } of payment) named.add(transaction.networkTransactionId);
  }
  payments.set(networkPaymentId, named);
  return named;
}

function tallyUnreadable(
  found: Comparison,
  kind: Finding['kind'],
  objects: readonly (ListedCard | ListedMovement | ListedTransaction | UnreadableObject)[],
): void {
  for (const object of objects) {
    if (!('unreadable' in object)) continue;
    const { networkId: issuerId, unreadable } = object;
    const detail =
      `this release can't read what the issuer has under this id (${unreadable.join(', ')}), so it was not compared; ` +
      'a newer release may read it';
    tally(found, { problem: 'different', kind, id: null, issuerId, detail });
  }
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
  read(
    em: ReturnType<Orm['em']['fork']>,
    page: Page,
  ): Promise<(OurObject & { payment_id?: string | null })[]>;
}

/**
 * Finds which of ours in the period the network has not listed, a page at a time. It lists payments by when
 * they began, so what is part of one counts as missing only if the payment was read and does not have it.
 */
async function findMissing(look: Look, { kind, prefix, read }: OurList): Promise<void> {
  const { receiving, found, runId, since, until: before, signal } = look;
  let after: string = lowestId(prefix, since);
  const until = lowestId(prefix, before);
  for (;;) {
    signal.throwIfAborted();
    const page = await read(receiving.orm.em.fork(), { runId, after, until, limit: READ_AT_ONCE });
    for (const { id, issuer_id: issuerId, payment_id: paymentId, detail, is_missing: isMissing } of page) {
      if (!isMissing) continue;
      if (paymentId !== undefined) {
        const named = paymentId === null ? null : await comparePayment(look, paymentId);
        if (named === null || named.has(issuerId ?? '')) continue;
      }
      tally(found, { problem: 'missing_at_issuer', kind, id, issuerId, detail });
    }
    const last = page.at(-1);
    if (last === undefined || page.length < READ_AT_ONCE) return;
    after = last.id;
  }
}

/** Nothing of ours is held open while the network takes its time. */
async function* inBatches<Item>(items: AsyncIterable<Item>, { signal }: Look): AsyncGenerator<Item[]> {
  let batch: Item[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < COMPARED_AT_ONCE) continue;
    signal.throwIfAborted();
    yield batch;
    batch = [];
  }
  signal.throwIfAborted();
  if (batch.length > 0) yield batch;
}
