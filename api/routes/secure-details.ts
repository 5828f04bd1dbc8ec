import { z } from 'zod';
import { SecureDetails } from '../../domain/secure-details.ts';
import { route } from '../http/route.ts';
import * as EXAMPLES from '../openapi/examples.ts';
import { type RevealDependencies, revealCard } from '../reveal-card.ts';

export const getSecureDetails = (dependencies: RevealDependencies) =>
  route({
    method: 'get',
    path: '/cards/:cardId/secure-details',
    operationId: 'cards.getSecureDetails',
    summary: "Retrieve a card's secure details",
    description:
      'The full card number, CVV and expiry, fetched from the card network at that moment. This is disabled until we ' +
      'enable it for your account. You can make 3 requests in any minute and 20 in any 24 hours. A request that the card ' +
      'network does not answer counts.',
    query: z.strictObject({}),
    responses: { 200: SecureDetails },
    examples: { 200: EXAMPLES.SECURE_DETAILS },
    errors: ['secure_details_disabled', 'card_not_found', 'invalid_state', 'reveal_limit_reached'],
    async handle({ caller, params, requestId }) {
      const { partnerId, mode, keyId } = caller;
      const attempt = { partnerId, mode, cardId: params.cardId ?? '', apiKeyId: keyId, requestId };
      return {
        status: 200,
        headers: { 'Cache-Control': 'no-store' },
        body: await revealCard(dependencies, attempt),
      };
    },
  });
