import { pino } from 'pino';
import { createLithicClient } from '../issuers/lithic/client.ts';
import { UNLIMITED } from '../issuers/request-budget.ts';
import { Environment } from '../platform/config/environment.ts';
import { parseEnvironment } from '../platform/config/read-environment.ts';
import { newId } from '../platform/crypto/new-id.ts';

/**
 * `npm run smoke:lithic`: makes a card in Lithic's sandbox, finds it again, pauses, opens and closes it, and
 * prints what it saw. It needs LITHIC_API_KEY of the sandbox, and refuses every other address than the
 * sandbox's or a fake's on this machine.
 */
const { values } = parseEnvironment(
  Environment.pick({
    LITHIC_API_KEY: true,
    LITHIC_BASE_URL: true,
    LITHIC_CARD_PROGRAM_TOKEN: true,
  }),
  process.env,
);
const baseUrl = values.LITHIC_BASE_URL ?? 'https://sandbox.lithic.com';
if (values.LITHIC_API_KEY === undefined) {
  console.error('Nothing was done: set LITHIC_API_KEY to an API key of the sandbox.');
  process.exit(1);
}
if (!['sandbox.lithic.com', '127.0.0.1'].includes(new URL(baseUrl).hostname)) {
  console.error('Nothing was done: LITHIC_BASE_URL is not the sandbox.');
  process.exit(1);
}

const client = createLithicClient({
  config: {
    apiKey: values.LITHIC_API_KEY,
    webhookSecret: '',
    asaSecret: '',
    baseUrl,
    cardProgramToken: values.LITHIC_CARD_PROGRAM_TOKEN ?? null,
    requestsPerSecond: 1,
  },
  keyLifetimeMs: 20 * 3_600_000,
  budget: UNLIMITED,
  logger: pino({ level: 'warn' }),
  isUnderWay: async () => true,
});
try {
  await tryLithic();
} catch (error) {
  console.error(`Lithic can't be used: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  await client.close();
}

async function tryLithic(): Promise<void> {
  const token = newId('card');
  const order = { token, productCode: '', bin: '', amountCents: 0, cardholderName: null };
  const issued = await client.issueCard(order);
  if (issued.status !== 'issued') throw new Error(`it issued no card: ${JSON.stringify(issued)}`);
  const { networkCardId, last4, expMonth, expYear } = issued;
  console.log(`issued ${networkCardId} for ${token}: ends in ${last4}, expires ${expMonth}/${expYear}`);
  const again = await client.issueCard(order);
  console.log(`asked again: ${sameCard(again, networkCardId)}`);
  console.log(`looked up: ${sameCard(await client.lookUpIssuance(token), networkCardId)}`);
  const { pan } = await client.revealCard({ cardId: token, networkCardId });
  console.log(
    `revealed: a number of ${pan.length} digits that ${pan.endsWith(last4) ? 'fits' : 'does not fit'}`,
  );
  for (const cardStatus of ['frozen', 'active', 'blocked'] as const) {
    const { status } = await client.changeCardStatus({ token: newId('claim'), networkCardId, cardStatus });
    console.log(`${cardStatus}: ${status}`);
  }
  let listed = 0;
  for await (const _ of client.listCards(new Date(Date.now() - 3_600_000))) listed++;
  console.log(`cards of the last hour: ${listed}`);
  const problems = await client.checkSetUp();
  console.log(`set-up: ${problems.length === 0 ? 'complete' : problems.join(' ')}`);
}

function sameCard(answer: { status: string; networkCardId?: string }, networkCardId: string): string {
  if (answer.networkCardId === networkCardId) return 'the same card';
  throw new Error(`it answered with another card, or none: ${answer.status}`);
}
