import { z } from 'zod';
import { SecureDetails } from '../../domain/secure-details.ts';
import { type RevealDependencies, revealCard } from '../reveal-card.ts';
import { route } from '../route.ts';

export const getSecureDetails = (dependencies: RevealDependencies) =>
  route({
    method: 'get',
    path: '/cards/:cardId/secure-details',
    summary: "Read a card's full number, CVV and expiry",
    description:
      'Off unless enabled for the account. At most 3 in any minute and 20 in any 24 hours; an attempt the network does not answer counts.',
    query: z.strictObject({}),
    responses: { 200: SecureDetails },
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
