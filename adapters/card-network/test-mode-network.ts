import type { CardNetwork } from './card-network.ts';
import { deriveCard } from './derive-card.ts';

/** Test numbers exist on no network, whatever the product's own BIN (partner-api.md, "Behaviours"). */
export const TEST_NUMBER_PREFIX = '4242';

/**
 * The network of mode test: issues at once whatever it is asked for, and is nothing but arithmetic. Looking a token up
 * tells what asking for it gives.
 * @param options.key 32 bytes; the cards are derived from it, so it must stay the same for their lives
 */
export function createTestModeNetwork(options: { key: Uint8Array }): CardNetwork {
  const issued = (token: string) => ({
    status: 'issued' as const,
    ...deriveCard(options.key, token, TEST_NUMBER_PREFIX),
  });
  return {
    issueCard: async (request) => issued(request.token),
    lookUpIssuance: async (token) => issued(token),
  };
}
