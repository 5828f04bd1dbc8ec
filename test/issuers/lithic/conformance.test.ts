import { pino } from 'pino';
import { startFakeLithic } from '../../../dev/lithic/fake-lithic.ts';
import { createLithicClient } from '../../../issuers/lithic/client.ts';
import { UNLIMITED } from '../../../issuers/request-budget.ts';
import { startUnrulyProxy } from '../../support/adapters/unruly-proxy.ts';
import { describeConformance } from '../conformance.ts';

describeConformance('Lithic', async ({ keyLifetimeMs }) => {
  const apiKey = 'lithic-api-key';
  const fake = await startFakeLithic({ apiKey });
  const proxy = await startUnrulyProxy(fake.url);
  const pausesMs: number[] = [];
  const client = createLithicClient({
    config: {
      apiKey,
      webhookSecret: '',
      asaSecret: '',
      baseUrl: proxy.url,
      cardProgramToken: null,
      requestsPerSecond: 5,
    },
    keyLifetimeMs,
    budget: { ...UNLIMITED, noteRetryAfter: async (waitMs) => void pausesMs.push(waitMs) },
    logger: pino({ level: 'silent' }),
    isUnderWay: async () => true,
  });
  return {
    network: client,
    proxy,
    pausesMs,
    returnedFrom: async () => null,
    cardsOf: async (token) =>
      [...fake.program.cards.values()].filter(({ memo, state }) => memo === token && state === 'OPEN').length,
    // Our ledger alone has the cards' money.
    movedTo: async () => null,
    loseNextAnswer: () => {
      fake.faults.add({ fault: 'lost after', request: 'POST /v1/cards', times: 1 });
      return 5_000;
    },
    refuseNext: () => {
      fake.faults.add({ fault: 'refused', request: 'POST /v1/cards', times: 1 });
      return 5_000;
    },
    stop: async () => {
      await client.close();
      await proxy.close();
      await fake.stop();
    },
  };
});
