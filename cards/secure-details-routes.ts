import type { Logger } from 'pino';
import { z } from 'zod';
import { declare, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import { cardholderName } from '../domain/card.ts';
import {
  type CardNetwork,
  CardNetworkUnavailable,
  type RevealedCard,
  type RevealRequest,
} from '../issuers/card-network.ts';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { type AdmittedCard, admitReveal, type RevealAttempt, recordRefusedReveal } from './admit-reveal.ts';
import { SECURE_DETAILS } from './examples.ts';

/**
 * The response to a reveal (docs/partners/secure-details.md). Secret: it goes to the partner and nowhere
 * else.
 */
const SecureDetails = z
  .object({
    card_id: z.string().describe("The card's id."),
    pan: z.string().describe('The full card number.'),
    cvv: z.string().describe('The card verification value.'),
    exp_month: z.string().describe('The month in which the card expires, as `MM`.'),
    exp_year: z.string().describe('The year in which the card expires, as `YYYY`.'),
    cardholder_name: z
      .string()
      .nullable()
      .describe('The name on the card. Null if it was issued without one.'),
  })
  .meta({ id: 'SecureDetails', description: 'The sensitive details of a card. Do not store or log them.' });
type SecureDetails = z.infer<typeof SecureDetails>;

const getSecureDetails = declare({
  method: 'get',
  path: '/cards/:cardId/secure-details',
  scope: 'secure_details:read',
  operationId: 'cards.getSecureDetails',
  summary: "Retrieve a card's secure details",
  description:
    'The full card number, CVV and expiry, fetched live from the card network. This is disabled until we ' +
    'enable it for your account. You can make 3 requests in any minute and 20 in any 24 hours. A request also counts if the card ' +
    'network does not respond.',
  responses: { 200: SecureDetails },
  examples: { 200: SECURE_DETAILS },
  errors: ['secure_details_disabled', 'card_not_found', 'invalid_state', 'reveal_limit_reached'],
});

export interface RevealDependencies {
  orm: Orm;
  logger: Logger;
  /** Null if CARD_NETWORK is none. */
  liveNetwork: Pick<CardNetwork, 'revealCard'> | null;
  revealTestCard(card: RevealRequest): Promise<RevealedCard>;
}

const BY_LINK =
  "A workbench session can't read secure details itself, and this request did nothing. Make a reveal link: POST /cards/{cardId}/reveal-links.";

export const secureDetails = resource({ getSecureDetails }, (dependencies: RevealDependencies) => ({
  async getSecureDetails({ caller, params, requestId, clientAddress }) {
    const { partnerId, mode, keyId } = caller;
    if (caller.sessionId !== null) throw new ApiError('insufficient_scope', { message: BY_LINK });
    const cardId = params.cardId ?? '';
    const attempt = { partnerId, mode, cardId, apiKeyId: keyId, requestId, clientAddress };
    return {
      status: 200,
      headers: { 'Cache-Control': 'no-store' },
      body: await revealCard(dependencies, attempt),
    };
  },
}));

/**
 * Counts a reveal, then asks the network. The card's details go to the partner and nowhere else.
 * @throws ApiError as admitReveal, and `unavailable` if the network does not answer
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

/**
 * If the reveal cannot be counted, the response is 429, never the card
 * (docs/decisions/reveals-are-no-workflow.md).
 */
async function admitOrRefuse(
  dependencies: RevealDependencies,
  attempt: RevealAttempt,
): Promise<AdmittedCard> {
  try {
    return await admitReveal(dependencies, attempt);
  } catch (error) {
    const { requestId } = attempt;
    if (error instanceof ApiError) {
      await recordRefusedReveal(dependencies, attempt, error.code).catch((failure) =>
        dependencies.logger.error(
          { requestId, error: describeError(failure) },
          'could not record a refused reveal in the audit log; this line is its only record: check PostgreSQL',
        ),
      );
      throw error;
    }
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
