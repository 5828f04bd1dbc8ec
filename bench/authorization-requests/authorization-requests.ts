import { Pool } from 'undici';
import { createApiKey } from '../../accounts/api-keys.ts';
import { openOrm } from '../../platform/db/orm.ts';
import { AMOUNT_CENTS } from '../bare-authorizations/bare-authorizations.ts';
import { ask } from '../support/accounts.ts';
import { startBareServer } from '../support/bare-server.ts';
import { describe, measure, measureInTurn, median, printedRatio } from '../support/measure.ts';
import { createNetworkRequests } from '../support/network.ts';
import { scaled } from '../support/scale.ts';
import { type BenchCard, seedFundedCards } from '../support/seed.ts';
import { startService } from '../support/service.ts';

const ROUNDS = scaled(5);

/**
 * Compares the p50 of a decision over the whole HTTP path, asked by the network and in test mode, with a bare
 * Koa handler that runs the statements of test mode. Both modes write as many rows: the message that asked,
 * or the request's claim.
 */
export async function compareRequests(): Promise<void> {
  const service = await startService({ worker: false });
  console.log('requests over HTTP');
  const orm = await openOrm({ databaseUrl: service.databaseUrl, poolSize: 1 });
  const operator = { orm: service.orm, ring: service.ring, actor: 'bench' };
  const one = { accounts: 1, cardsEach: 1 };
  const [live] = await seedFundedCards(operator, orm, service.databaseUrl, { mode: 'live', ...one });
  const [test] = await seedFundedCards(operator, orm, service.databaseUrl, { mode: 'test', ...one });
  await orm.close();
  const liveCard = live as BenchCard;
  const testCard = test as BenchCard;
  const { partnerId } = testCard;
  const { key } = await createApiKey(operator, { partnerId, mode: 'test', name: null });
  const askAsNetwork = createNetworkRequests(service.ring);
  const entry = new URL('../bare-authorizations/server.ts', import.meta.url);
  const bare = await startBareServer(entry, [service.databaseUrl, partnerId, testCard.cardId]);
  const pools = { ours: new Pool(service.origin), floor: new Pool(bare.origin) };
  const path = `/test/cards/${testCard.cardId}/authorizations`;
  const requests = {
    floor: async () => void (await ask({ pool: pools.floor, key }, 'POST', path, { amount: AMOUNT_CENTS })),
    test: async () => void (await ask({ pool: pools.ours, key }, 'POST', path, { amount: AMOUNT_CENTS })),
    // A seeded card has its own id at the network.
    live: () => askAsNetwork(pools.ours, liveCard.cardId, AMOUNT_CENTS),
  };
  try {
    // Code that V8 has not compiled yet would decide.
    for (const request of Object.values(requests)) await measure(scaled(1_000), 4, request);
    for (const [inFlight, count] of [
      [1, scaled(400)],
      [16, scaled(1_000)],
    ] as const) {
      const measured = await measureInTurn(requests, { rounds: ROUNDS, count, inFlight });
      console.log(`one card, ${inFlight} in flight`);
      console.log(describe('  a bare Koa handler', median(measured.floor)));
      for (const [which, name] of [
        ['live', 'POST /network/authorizations'],
        ['test', 'POST /test/cards/{id}/authorizations'],
      ] as const) {
        console.log(describe(`  ${name}`, median(measured[which])));
        const ratio = printedRatio(measured[which], measured.floor, 'p50Ms');
        console.log(`  ratio of p50: ${ratio} (goal at most 1.3)`);
      }
    }
  } finally {
    await Promise.all([pools.ours.close(), pools.floor.close()]);
    await bare.stop();
    await service.stop();
  }
}
