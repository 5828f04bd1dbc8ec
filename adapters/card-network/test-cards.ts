import { testCardKey } from '../../crypto/derived-keys.ts';
import type { KeyRing } from '../../crypto/key-ring.ts';
import type { IssuedCard } from '../../domain/issued-card.ts';
import type { RevealedCard, RevealRequest } from './card-network.ts';
import { deriveCard, deriveRevealedCard } from './derive-card.ts';

/** Test numbers exist on no network, whatever the product's own BIN (partner-api.md, "Behaviours"). */
const NUMBER_PREFIX = '4242';

/**
 * Issues test cards from the ring's current key, and keeps that key's id in the network's card id: a later reveal
 * derives the same number whatever the ring has become since.
 */
export function testCardIssuer(ring: KeyRing): (cardId: string) => Promise<IssuedCard> {
  const keyId = ring.primaryId;
  const key = testCardKey(ring, keyId);
  return async (cardId) => {
    const card = deriveCard(key, cardId, NUMBER_PREFIX);
    return { ...card, networkCardId: `${keyId}/${card.networkCardId}` };
  };
}

/**
 * Derives the details of cards that {@link testCardIssuer} issued.
 * @returns a function that throws an Error where the card's key has left the ring.
 */
export function testCardRevealer(ring: KeyRing): (card: RevealRequest) => Promise<RevealedCard> {
  return async ({ cardId, networkCardId }) => {
    const keyId = networkCardId.slice(0, networkCardId.lastIndexOf('/'));
    return deriveRevealedCard(testCardKey(ring, keyId), cardId, NUMBER_PREFIX);
  };
}
