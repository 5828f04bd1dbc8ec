import { lowestId, newId } from '../../platform/crypto/new-id.ts';
import { isReadable, type ListedCard, type UnreadableObject } from '../card-network.ts';
import { type ChangedCard, compareCards, readChangedCards, readOpenCards } from './compare-cards.ts';
import { compareMovements } from './compare-movements.ts';
import { compareListedPayments } from './compare-payments.ts';
import type { Finding } from './findings.ts';
import {
  type Comparison,
  inBatches,
  type Look,
  missingAtNetwork,
  READ_AT_ONCE,
  type ReconciliationOptions,
  tally,
  tallyUnreadable,
} from './look.ts';
import { OUR_CARDS, OUR_MOVEMENTS, OUR_TRUE_UPS, type OurPages } from './ours.ts';
import { forgetSeen, noteSeen } from './seen.ts';

/** A look reads no more cards than this by their ids. */
const MAX_READ_BY_ID = 5_000;
/** The network's clock may be behind ours. */
const MAX_CLOCK_DIFFERENCE_MS = 600_000;

/**
 * Looks once at all of both records: the network's lists, and what is older or not listed by its id.
 * @param before an earlier look
 * @throws CardNetworkUnavailable if the lists can't be read
 */
export async function compareAll(
  options: ReconciliationOptions,
  before: Comparison | null,
): Promise<Comparison> {
  const { orm, network, cardNetwork, since } = options;
  const runId = newId('rec');
  const look: Look = {
    ...options,
    runId,
    before,
    found: { matched: 0, findings: new Map(), corrected: [], isToCorrect: false, isTruncated: false },
    listedSince: new Date(since.getTime() - MAX_CLOCK_DIFFERENCE_MS),
    until: new Date(),
  };
  await forgetSeen(orm, runId);
  try {
    await compareListedCards(look);
    // If our ledger holds the money, the network has no movements.
    if (network.abilities.moneyHeldBy === 'network') await compareListedMovements(look);
    // The simulated network has no payments of its own: operators send them.
    if (cardNetwork !== 'simulated') await compareListedPayments(look);
    return look.found;
  } finally {
    await forgetSeen(orm, runId);
  }
}

async function compareListedCards(look: Look): Promise<void> {
  const { network, listedSince } = look;
  for await (const cards of inBatches(network.listCards(listedSince), look))
    await compareSomeCards(look, cards);
  await noteMissing(look, 'card', OUR_CARDS);
  await compareOlderCards(look);
}

async function compareSomeCards(
  { orm, found, runId }: Look,
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
  const { orm, cardNetwork: network, runId, since, until, signal } = look;
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
  const { orm, network, cardNetwork, runId, found, listedSince } = look;
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
  for (const ours of OUR_MOVEMENTS) await noteMissing(look, 'movement', ours);
  // The simulated network moves nothing back or after.
  if (cardNetwork !== 'simulated') await noteMissing(look, 'movement', OUR_TRUE_UPS);
}

/** What the network has not listed of ours. */
async function noteMissing(look: Look, kind: Finding['kind'], ours: OurPages): Promise<void> {
  for await (const { id, issuer_id: issuerId, detail } of missingAtNetwork(look, ours))
    tally(look.found, { problem: 'missing_at_issuer', kind, id, issuerId, detail });
}
