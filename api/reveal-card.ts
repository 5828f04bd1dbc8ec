import type { Logger } from 'pino';
import {
  type CardNetwork,
  CardNetworkUnavailable,
  type RevealedCard,
  type RevealRequest,
} from '../adapters/card-network/card-network.ts';
import { type AdmittedCard, admitReveal, type RevealAttempt } from '../commands/reveals/admit-reveal.ts';
import type { Orm } from '../db/orm.ts';
import { ApiError } from '../domain/api-error.ts';
import { cardholderName } from '../domain/card.ts';
import { describeError } from '../domain/describe-error.ts';
import type { SecureDetails } from '../domain/secure-details.ts';

export interface RevealDependencies {
  orm: Orm;
  logger: Logger;
  /** Null where CARD_NETWORK is none. */
  liveNetwork: Pick<CardNetwork, 'revealCard'> | null;
  revealTestCard(card: RevealRequest): Promise<RevealedCard>;
}

/**
 * Counts a reveal, then asks the network. What the network says goes into the answer and nowhere else.
 * @throws ApiError as admitReveal, and `unavailable` where the network does not tell.
 */
export async function revealCard(
  dependencies: RevealDependencies,
  attempt: RevealAttempt,
): Promise<SecureDetails> {
  const card = await admitOrRefuse(dependencies, attempt);
  const details = await askNetwork(dependencies, card, attempt.requestId);
  return {
    card_id: card.id,
    pan: details.pan,
    cvv: details.cvv,
    exp_month: String(details.expMonth).padStart(2, '0'),
    exp_year: String(details.expYear),
    cardholder_name: cardholderName(card),
  };
}

/** decisions.md, "Reveal limit": if the count cannot be read the answer is 429, never the card. */
async function admitOrRefuse(
  dependencies: RevealDependencies,
  attempt: RevealAttempt,
): Promise<AdmittedCard> {
  try {
    return await admitReveal(dependencies, attempt);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    const { requestId } = attempt;
    dependencies.logger.error(
      { requestId, error: describeError(error) },
      'refused a reveal because it could not be counted; check PostgreSQL',
    );
    throw new ApiError('reveal_limit_reached', {
      message: 'Card details cannot be revealed right now. Retry after the number of seconds in Retry-After.',
      retryAfterSeconds: 10,
    });
  }
}

async function askNetwork(
  { liveNetwork, revealTestCard, logger }: RevealDependencies,
  card: AdmittedCard,
  requestId: string,
): Promise<RevealedCard> {
  const asked = { cardId: card.id, networkCardId: card.network_card_id };
  try {
    if (card.mode === 'test') return await revealTestCard(asked);
    if (liveNetwork !== null) return await liveNetwork.revealCard(asked);
    logger.error({ requestId }, 'cannot reveal a live card: CARD_NETWORK is none; configure a card network');
  } catch (error) {
    if (!(error instanceof CardNetworkUnavailable)) throw error;
    logger.warn({ requestId, error: describeError(error) }, 'the card network did not return card details');
  }
  const message =
    'The card network is not responding. Try again later. This attempt counts towards your reveal limit.';
  throw new ApiError('unavailable', { message });
}
