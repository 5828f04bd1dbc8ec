import type { KeyObject } from 'node:crypto';
import { query, type Sql } from '../../db/sql.ts';
import type { RevealedCard } from '../card-network/card-network.ts';
import { deriveRevealedCard } from '../card-network/derive-card.ts';

/** @returns undefined where the network has no such card. */
export async function revealDetails(
  em: Sql,
  cardKey: KeyObject,
  networkCardId: string,
): Promise<RevealedCard | undefined> {
  const [card] = await query<{ token: string; bin: string }>(
    em,
    `SELECT token, o.request ->> 'bin' AS bin
       FROM simulated_network.card JOIN simulated_network.operation o USING (token) WHERE network_card_id = $1`,
    [networkCardId],
  );
  return card && deriveRevealedCard(cardKey, card.token, card.bin);
}
