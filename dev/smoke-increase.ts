import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { z } from 'zod';
import { TRANSFERS, type TransferDirection } from '../domain/transfer.ts';
import { isReadable } from '../issuers/card-network.ts';
import { createIncreaseClient } from '../issuers/increase/client.ts';
import { createIncreaseApi } from '../issuers/increase/increase-api.ts';
import { UNLIMITED } from '../issuers/request-budget.ts';
import { increaseConfig, NETWORK_VARIABLES, networkProblems } from '../platform/config/card-networks.ts';
import { parseEnvironment } from '../platform/config/read-environment.ts';
import { newId } from '../platform/crypto/new-id.ts';

/**
 * `npm run smoke:increase`: issues a card in Increase's sandbox, uses it and blocks it, and prints what it
 * saw. It needs a key and a funding account with a few dollars there: INCREASE_API_KEY,
 * INCREASE_FUNDING_ACCOUNT_ID. No database, no events. It refuses every other address than the sandbox's or a
 * fake's on this machine.
 */
const { values } = parseEnvironment(
  z.object(NETWORK_VARIABLES),
  {
    INCREASE_BASE_URL: 'https://sandbox.increase.com',
    INCREASE_WEBHOOK_SECRET: 'this-one-is-not-used-here',
    ...process.env,
    CARD_NETWORK: 'increase',
  },
  networkProblems,
);
const config = increaseConfig(values);
if (config === null) throw new Error('there is no configuration of Increase');
if (!['sandbox.increase.com', '127.0.0.1'].includes(new URL(config.baseUrl).hostname)) {
  console.error('Nothing was done: INCREASE_BASE_URL is not the sandbox.');
  process.exit(1);
}

const logger = pino({ level: 'warn' });
const client = createIncreaseClient({
  config,
  keyLifetimeMs: 3_600_000,
  isUnderWay: async () => true,
  isInUse: async () => false,
  budget: UNLIMITED,
  logger,
});
const api = createIncreaseApi({ config, budget: UNLIMITED, logger });
const started = new Date();
try {
  await useCard();
} catch (error) {
  console.error(`it failed: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  await client.close();
  await api.close();
}

async function useCard(): Promise<void> {
  const problems = await client.checkSetUp();
  console.log(problems.length === 0 ? 'the set-up is complete' : `to mend: ${problems.join(' ')}`);
  const order = {
    token: newId('card'),
    productCode: 'smoke',
    bin: '424242',
    amountCents: 500,
    cardholderName: null,
  };
  const issued = await client.issueCard(order);
  console.log(`issued ${order.token}: ${issued.status}`);
  console.log(`  asked again: ${(await client.issueCard(order)).status}`);
  console.log(`  looked up: ${(await client.lookUpIssuance(order.token)).status}`);
  if (issued.status !== 'issued') return;
  const { networkCardId } = issued;
  const movement = (direction: TransferDirection, amountCents: number) => ({
    token: newId(TRANSFERS[direction].idPrefix),
    direction,
    networkCardId,
    amountCents,
  });
  console.log(`topped up: ${(await client.transfer(movement('topup', 200))).status}`);
  console.log(`withdrew: ${(await client.transfer(movement('withdrawal', 100))).status}`);
  await useOnce(networkCardId);
  for (const cardStatus of ['frozen', 'active', 'blocked'] as const) {
    const changed = await client.changeCardStatus({ token: newId('claim'), networkCardId, cardStatus });
    console.log(`${cardStatus}: ${changed.status}`);
  }
  const again = await client.changeCardStatus({ token: newId('claim'), networkCardId, cardStatus: 'active' });
  console.log(`a blocked card made active again: ${again.status}`);
  const cover = await client.trueUp({
    token: newId('tru'),
    direction: 'to_card',
    networkCardId,
    amountCents: 50,
  });
  console.log(`the blocked card covered: ${cover.status}`);
  const back = await client.trueUp({
    token: newId('tru'),
    direction: 'from_card',
    networkCardId,
    amountCents: 100,
  });
  console.log(`money of the blocked card returned: ${back.status}`);
  for await (const movement of client.listMovements(started)) {
    if (!isReadable(movement)) console.log(`listed: can't be read: ${movement.unreadable}`);
    else console.log(`listed: ${movement.kind} of ${movement.amountCents}, ${movement.status}`);
  }
  for await (const payment of client.listPayments(started)) {
    if (!isReadable(payment)) console.log(`listed: can't be read: ${payment.unreadable}`);
    else
      console.log(`listed: a payment of ${payment.authorizedCents}, of which ${payment.heldCents} are held`);
  }
}

/** A merchant's authorization, which nobody here decides. */
async function useOnce(networkCardId: string): Promise<void> {
  const body = { card_id: networkCardId, amount: 150 };
  const path = '/simulations/card_authorizations';
  const answer = await api.act(
    { method: 'POST', path, body, key: null, turn: 'operation' },
    z.looseObject({}),
  );
  console.log(`a merchant asked: ${'refused' in answer ? answer.refused : 'answered'}`);
  await sleep(1_000);
}
