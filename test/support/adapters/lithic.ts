import { type FakeLithic, startFakeLithic } from '../../../dev/lithic/fake-lithic.ts';
import type { Card } from '../../../dev/lithic/objects.ts';
import { AUTHORIZATIONS_PATH } from '../../../issuers/lithic/wire.ts';
import type { Config } from '../../../platform/config/service.ts';
import { networkIdOf } from '../api/network-events.ts';
import { inboxRead } from '../inbox.ts';
import { startTestStack, type TestStack } from '../stack.ts';

const secretOf = (fill: number): string => `whsec_${Buffer.alloc(24, fill).toString('base64')}`;
export const WEBHOOK_SECRET = secretOf(1);
export const ASA_SECRET = secretOf(2);
export const API_KEY = 'lithic-api-key';

export const lithicConfigOf = (fake: FakeLithic): Pick<Config, 'cardNetwork' | 'lithic'> => ({
  cardNetwork: 'lithic',
  lithic: {
    apiKey: API_KEY,
    webhookSecret: WEBHOOK_SECRET,
    asaSecret: ASA_SECRET,
    baseUrl: fake.url,
    cardProgramToken: null,
    requestsPerSecond: 1_000,
  },
});

export async function startLithicStack(
  overrides: Partial<Config> = {},
  options: Parameters<typeof startTestStack>[1] = {},
) {
  const fake = await startFakeLithic({
    apiKey: API_KEY,
    webhookSecrets: [WEBHOOK_SECRET],
    asaSecrets: [ASA_SECRET],
    // Longer than Lithic's, since the machine may do much else at the time.
    asaTimeoutMs: 60_000,
  });
  const stack = await startTestStack({ ...overrides, ...lithicConfigOf(fake) }, options);
  enrol(fake, stack);
  return {
    fake,
    stack,
    stop: async () => {
      await stack.stop();
      await fake.stop();
    },
  };
}

/** Lithic asks this service, and tells it. */
export function enrol({ program }: FakeLithic, { config }: TestStack): void {
  const url = `http://${config.host}:${config.port}`;
  program.posts.options.receiverUrl = url;
  program.responderUrl = url + AUTHORIZATIONS_PATH;
}

export async function lithicCard(fake: FakeLithic, stack: TestStack, cardId: string): Promise<Card> {
  return fake.program.card(await networkIdOf(stack, cardId));
}

/** Waits until the service has taken every event that Lithic has sent so far. */
export async function allTaken({ program }: FakeLithic, stack: TestStack): Promise<void> {
  await program.posts.idle();
  await inboxRead(stack);
}
