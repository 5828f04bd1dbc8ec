import { sql } from 'kysely';
import type { IssuedCard } from '../domain/card.ts';
import type { WhyNot } from '../domain/decision.ts';
import { passedTimes } from '../platform/db/has-passed.ts';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement, readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { readDecision, refuseDecision } from './decision.ts';
import { lockAnyCard } from './lock-card.ts';
import type { CardRow } from './resource.ts';

/**
 * What the network says about a card it never reported as issued: the card, null for none, `away` if it did
 * not answer.
 */
export type NetworkEvidence = { card: IssuedCard | null } | 'away';

/** The card at the network, according to the network and an operator, or why it can't be determined. */
export async function readNetworkCard(
  tx: Transactor,
  cardId: string,
  evidence: NetworkEvidence,
  networkCardId: string | undefined,
): Promise<IssuedCard | WhyNot> {
  const known = evidence === 'away' ? null : evidence.card;
  if (known !== null) {
    if (networkCardId !== undefined && networkCardId !== known.networkCardId) return 'other_id_at_network';
    await freeNetworkId(tx, { networkCardId: known.networkCardId });
    return (await isAnotherCardsId(tx, cardId, known.networkCardId)) ? 'id_of_another_card' : known;
  }
  if (networkCardId === undefined) return evidence === 'away' ? 'network_away' : 'unknown_to_network';
  if (await isAnotherCardsId(tx, cardId, networkCardId)) return 'id_of_another_card';
  return { networkCardId, last4: null, expMonth: null, expYear: null };
}

/** Whether another of our live cards has this id at the network. */
export async function isAnotherCardsId(
  tx: Transactor,
  cardId: string,
  networkCardId: string,
): Promise<boolean> {
  return (await others(tx, { cardId, networkCardId })).length > 0;
}

const others = readStatement(
  (db, { cardId, networkCardId }: { cardId: string; networkCardId: string }) =>
    db
      .selectFrom('card')
      .select('id')
      .where('network_card_id', '=', networkCardId)
      .where('mode', '=', sql.lit('live'))
      .where('id', '<>', cardId),
  { acrossTenants: 'network' },
);

/**
 * Whether a card's network id is one that a person gave, and the network has not confirmed: then workers look
 * it up, and an operator can give another id.
 */
export const isGivenByHand = (card: Pick<CardRow, 'mode' | 'network_card_id' | 'last4'>): boolean =>
  card.mode === 'live' && card.network_card_id !== null && card.last4 === null;

/** What stands for an id at the network that turned out to be another card's, until the right one is known. */
const FREED = 'unknown/';

export const hasLostNetworkId = ({ network_card_id: id }: Pick<CardRow, 'network_card_id'>): boolean =>
  id?.startsWith(FREED) === true;

/**
 * Frees an id that a person gave a card and the network gives another one. The first is looked up next.
 * @returns the first, unless the network has confirmed its id
 */
export const freeNetworkId = writeStatement(
  (_, { networkCardId }: { networkCardId: string }) => sql<{ id: string }>`
    UPDATE card SET network_card_id = ${FREED}::text || id, look_up_after = '-infinity'
    WHERE mode = 'live' AND network_card_id = ${networkCardId} AND last4 IS NULL
    RETURNING id`,
  { acrossTenants: 'network' },
);

/** Has a worker look a card up at the network as soon as it can. */
export const lookUpSoon = writeStatement(
  (db, { cardId }: { cardId: string }) =>
    db.updateTable('card').set({ look_up_after: sql`'-infinity'` }).where('id', '=', cardId),
  { acrossTenants: 'queue' },
);

const LONGEST_MS = 86_400_000;

/**
 * Takes cards whose network id the network has not confirmed, least recently looked up first. For
 * `pauseMs`, which is at most a day, nobody else takes them. @returns their ids
 */
export async function takeUnconfirmedCards(orm: Orm, limit: number, pauseMs: number): Promise<string[]> {
  const cards = await take(orm, { limit, pauseMs });
  return cards.map(({ id }) => id);
}

// The planner uses the partial index only if the conditions are written as in the index.
const take = autocommitStatement(
  (_, { limit, pauseMs }: { limit: number; pauseMs: number }) => sql<{ id: string }>`
    UPDATE card SET look_up_after = now() + ${pauseMs} * interval '1 millisecond'
    WHERE id IN (
      SELECT next.id FROM ${passedTimes(LONGEST_MS)} CROSS JOIN LATERAL (
        SELECT q.id FROM card q
        WHERE q.mode = 'live' AND q.network_card_id IS NOT NULL AND q.last4 IS NULL
          AND q.look_up_after BETWEEN time.earliest AND time.latest
        ORDER BY q.look_up_after LIMIT ${limit} FOR NO KEY UPDATE OF q SKIP LOCKED) next
      LIMIT ${limit})
    RETURNING id`,
  { acrossTenants: 'queue' },
);

/**
 * Stores what the network says about a card, or the id that an operator has recorded if the network
 * says nothing. What the network says about our token takes precedence over an id that a person gave.
 * @returns whether the card's network id has changed
 */
export function identifyCard(orm: Orm, cardId: string, evidence: NetworkEvidence): Promise<boolean> {
  return transaction(orm, async (tx) => {
    const card = await lockAnyCard(tx, cardId);
    if (card === undefined || !isGivenByHand(card)) return false;
    const recorded = await readDecision(tx, 'card', cardId);
    const given = recorded?.refused === undefined ? recorded?.networkCardId : undefined;
    const byPerson = await readNetworkCard(tx, cardId, evidence, given);
    if (typeof byPerson === 'string' && given !== undefined) {
      await refuseDecision(tx, 'card', cardId, byPerson);
    }
    const known =
      byPerson === 'other_id_at_network' ? await readNetworkCard(tx, cardId, evidence, undefined) : byPerson;
    if (typeof known === 'string') return false;
    await identify(tx, { ...known, cardId });
    return known.networkCardId !== card.network_card_id;
  });
}

const identify = writeStatement(
  (db, card: IssuedCard & { cardId: string }) =>
    db
      .updateTable('card')
      .set({
        network_card_id: card.networkCardId,
        last4: card.last4,
        exp_month: card.expMonth,
        exp_year: card.expYear,
      })
      .where('id', '=', card.cardId),
  { acrossTenants: 'queue' },
);
