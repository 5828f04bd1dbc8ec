import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import { lockCard } from '../card-status/lock-card.ts';
import { isUnidentified } from './decide-issuance.ts';
import { readDecision, refuseDecision } from './decision.ts';
import { identify, type SilentNetwork } from './settle-issuance-by-hand.ts';

/**
 * Takes cards in use whose id or digits the network has not told, least recently looked up first; each is somebody
 * else's only after `pauseMs`. @returns their ids
 */
export async function takeUnidentifiedCards(orm: Orm, limit: number, pauseMs: number): Promise<string[]> {
  const cards = await query<{ id: string }>(
    orm.em.fork(),
    `UPDATE card SET look_up_after = now() + $2 * interval '1 millisecond'
     WHERE id IN (
       SELECT id FROM card
       WHERE mode = 'live' AND status IN ('active', 'frozen') AND (network_card_id IS NULL OR last4 IS NULL)
         AND look_up_after < now()
       ORDER BY look_up_after LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED)
     RETURNING id`,
    [limit, pauseMs],
  );
  return cards.map(({ id }) => id);
}

/**
 * Gives a card in use what the network says of it, or the id that an operator has recorded where it says nothing. What
 * the network says of our token goes before an id that a person gave.
 * @returns whether the network's id of the card is another one now
 */
export function identifyCard(orm: Orm, cardId: string, network: SilentNetwork): Promise<boolean> {
  return transaction(orm, async (tx) => {
    const card = await lockCard(tx, cardId);
    if (card === undefined || !isUnidentified(card)) return false;
    const recorded = await readDecision(tx, 'card', cardId);
    const given = recorded?.refused === undefined ? recorded?.networkCardId : undefined;
    const byPerson = await identify(tx, cardId, network, given);
    if (typeof byPerson === 'string' && given !== undefined)
      await refuseDecision(tx, 'card', cardId, byPerson);
    const known =
      byPerson === 'other_id_at_network' ? await identify(tx, cardId, network, undefined) : byPerson;
    if (typeof known === 'string') return false;
    await query(
      tx,
      'UPDATE card SET network_card_id = $2, last4 = $3, exp_month = $4, exp_year = $5 WHERE id = $1',
      [cardId, known.networkCardId, known.last4, known.expMonth, known.expYear],
    );
    return known.networkCardId !== card.network_card_id;
  });
}
