import type { NetworkEvidence } from '../commands/funding/network-card.ts';
import { type CardNetwork, CardNetworkUnavailable, type LookUpAnswer } from '../domain/card-network.ts';

/** Live mode has no network (any more), but something is pending there. */
class NoCardNetwork extends Error {
  override readonly name = 'NoCardNetwork';
}

/** Live mode's network, for what is pending there. @throws NoCardNetwork */
export function configured(network: CardNetwork | null): CardNetwork {
  if (network === null) {
    throw new NoCardNetwork(
      "live mode's network has work, but CARD_NETWORK is none: configure its network again",
    );
  }
  return network;
}

/**
 * Asks, again under the same token. A network that gives no answer to that may still know the token: it can have acted
 * before its answer got lost, or find that the request is not word for word the first one, as it is once the product's
 * BIN has changed.
 * @throws CardNetworkUnavailable if the network gives no definite answer.
 */
export async function askOrLookUp<Answer extends { status: string }>(
  ask: () => Promise<Answer>,
  lookUp: () => Promise<Answer | { status: 'unknown' }>,
): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof CardNetworkUnavailable)) throw error;
    const known = await lookUp();
    if (isUnknown(known)) throw error;
    return known;
  }
}

/** What the network says by itself; null if it gives no definite answer, or none is configured. */
export async function heard<Answer>(
  network: CardNetwork | null,
  lookUp: (network: CardNetwork) => Promise<Answer>,
): Promise<Answer | null> {
  if (network === null) return null;
  try {
    return await lookUp(network);
  } catch (error) {
    if (error instanceof CardNetworkUnavailable) return null;
    throw error;
  }
}

/** The card that the network has made for a token, by what it answered when the token was looked up. */
export function evidenceOf(answer: LookUpAnswer | null): NetworkEvidence {
  if (answer === null) return 'away';
  if (answer.status === 'issued') return { card: answer };
  return { card: (answer.status === 'accepted' && answer.card) || null };
}

function isUnknown<Answer extends { status: string }>(
  known: Answer | { status: 'unknown' },
): known is { status: 'unknown' } {
  return known.status === 'unknown';
}
