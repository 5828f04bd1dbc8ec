import { sql } from 'kysely';
import type { IssuedCard } from '../domain/card.ts';
import type { WhyNot } from '../domain/decision.ts';
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
    const isTaken = known.networkCardId !== null && (await isAnotherCardsId(tx, cardId, known.networkCardId));
    return isTaken ? 'id_of_another_card' : known;
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
 * Whether we lack a card's network id or its last four digits: then a worker looks it up, and an operator can
 * give the id.
 */
export const isUnidentified = (
  card: Pick<CardRow, 'mode' | 'status' | 'network_card_id' | 'last4'>,
): boolean =>
  card.mode === 'live' &&
  (card.status === 'active' || card.status === 'frozen') &&
  (card.network_card_id === null || card.last4 === null);

/** Whether a card's network id is one that a person gave, and the network has not confirmed. */
export const isGivenByHand = (card: Pick<CardRow, 'mode' | 'network_card_id' | 'last4'>): boolean =>
  card.mode === 'live' && card.network_card_id !== null && card.last4 === null;

/** Replaces the network id of a card that no worker looks up any more, in the caller's transaction. */
export const correctNetworkId = writeStatement(
  (db, { cardId, networkCardId }: { cardId: string; networkCardId: string }) =>
    db.updateTable('card').set({ network_card_id: networkCardId }).where('id', '=', cardId),
  { acrossTenants: 'queue' },
);

/** Has a worker look a card up at the network as soon as it can. */
export const lookUpSoon = writeStatement(
  (db, { cardId }: { cardId: string }) =>
    db.updateTable('card').set({ look_up_after: sql`'-infinity'` }).where('id', '=', cardId),
  { acrossTenants: 'queue' },
);

/**
 * Takes cards in use whose network id or last four digits are unknown, least recently looked up first. For
 * `pauseMs` nobody else takes them. @returns their ids
 */
export async function takeUnidentifiedCards(orm: Orm, limit: number, pauseMs: number): Promise<string[]> {
  const cards = await take(orm, { limit, pauseMs });
  return cards.map(({ id }) => id);
}

// The planner uses the partial index only if the conditions are written as in the index.
const take = autocommitStatement(
  (_, { limit, pauseMs }: { limit: number; pauseMs: number }) => sql<{ id: string }>`
    UPDATE card SET look_up_after = now() + ${pauseMs} * interval '1 millisecond'
    WHERE id IN (
      SELECT id FROM card
      WHERE mode = 'live' AND status IN ('active', 'frozen') AND (network_card_id IS NULL OR last4 IS NULL)
        AND look_up_after < now()
      ORDER BY look_up_after LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING id`,
  { acrossTenants: 'queue' },
);

/**
 * Stores what the network says about a card in use, or the id that an operator has recorded if the network
 * says nothing. What the network says about our token takes precedence over an id that a person gave.
 * @returns whether the card's network id has changed
 */
export function identifyCard(orm: Orm, cardId: string, evidence: NetworkEvidence): Promise<boolean> {
  return transaction(orm, async (tx) => {
    const card = await lockAnyCard(tx, cardId);
    if (card === undefined || !isUnidentified(card)) return false;
    const recorded = await readDecision(tx, 'card', cardId);
    const given = recorded?.refused === undefined ? recorded?.networkCardId : undefined;
    const byPerson = await readNetworkCard(tx, cardId, evidence, given);
    if (typeof byPerson === 'string' && given !== undefined) {
      await refuseDecision(tx, 'card', cardId, byPerson);
    }
    const known =
      byPerson === 'other_id_at_network' ? await readNetworkCard(tx, cardId, evidence, undefined) : byPerson;
    if (known === 'id_of_another_card' && evidence !== 'away' && evidence.card !== null) {
      await noteTakenId(tx, { cardId, networkCardId: evidence.card.networkCardId ?? '' });
    }
    if (typeof known === 'string') return false;
    await identify(tx, { ...known, cardId });
    return known.networkCardId !== card.network_card_id;
  });
}

const noteTakenId = writeStatement(
  (_, values: { cardId: string; networkCardId: string }) => sql`
  UPDATE card SET not_recorded = jsonb_build_object('reason', 'another card has its network id', 'networkCardId',
    ${values.networkCardId}::text, 'at', coalesce(not_recorded ->> 'at', to_jsonb(now()) #>> '{}'))
  WHERE id = ${values.cardId}`,
  { acrossTenants: 'network' },
);

const identify = writeStatement(
  (db, card: IssuedCard & { cardId: string }) =>
    db
      .updateTable('card')
      .set({
        network_card_id: card.networkCardId,
        last4: card.last4,
        exp_month: card.expMonth,
        exp_year: card.expYear,
        not_recorded: null,
      })
      .where('id', '=', card.cardId),
  { acrossTenants: 'queue' },
);
