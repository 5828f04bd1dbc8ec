import { testCardKey } from '../../db/derived-keys.ts';
import type { KeyRing } from '../../db/key-ring.ts';
import type { IssuedCard } from '../../domain/issued-card.ts';
import { deriveCard } from './derive-card.ts';
import { TEST_NUMBER_PREFIX } from './test-mode-network.ts';

/**
 * Issues test cards from the ring's current key, and keeps that key's id in the network's card id: a later reveal
 * derives the same number whatever the ring has become since.
 */
export function testCardIssuer(ring: KeyRing): (cardId: string) => Promise<IssuedCard> {
  const keyId = ring.primary.id;
  const key = testCardKey(ring, keyId);
  return async (cardId) => {
    const card = deriveCard(key, cardId, TEST_NUMBER_PREFIX);
    return { ...card, networkCardId: `${keyId}/${card.networkCardId}` };
  };
}
