import type { KeyObject } from 'node:crypto';
import { query, type Sql } from '../../db/sql.ts';
import type { RevealedCard } from '../card-network/card-network.ts';
import { deriveCard, deriveRevealedCard } from '../card-network/derive-card.ts';

/**
 * @param cardKeys among them the one the card was issued under: its id is derived from that one alone
 * @returns undefined where the network has no such card.
 * @throws Error where that key is gone.
 */
export async function revealDetails(
  em: Sql,
  cardKeys: readonly KeyObject[],
  networkCardId: string,
): Promise<RevealedCard | undefined> {
  const [card] = await query<{ token: string; bin: string }>(
    em,
    `SELECT token, o.request ->> 'bin' AS bin
       FROM simulated_network.card JOIN simulated_network.operation o USING (token) WHERE network_card_id = $1`,
    [networkCardId],
  );
  if (card === undefined) return undefined;
  const { token, bin } = card;
  const key = cardKeys.find((candidate) => deriveCard(candidate, token, bin).networkCardId === networkCardId);
  if (key === undefined) throw new Error('ENCRYPTION_KEYS lacks the key this card was issued under');
  return deriveRevealedCard(key, token, bin);
}
