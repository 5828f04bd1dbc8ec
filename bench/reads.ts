import { Pool } from 'undici';
import { ask } from './support/accounts.ts';
import { startBareServer } from './support/bare-server.ts';
import { describe, measureInTurn, median, printedRatio } from './support/measure.ts';
import { scaled } from './support/scale.ts';
import { seedCards, seededCardId } from './support/seed.ts';
import { startService } from './support/service.ts';

const IN_FLIGHT = 16;
const ROUNDS = scaled(5);

/**
 * Compares GET /cards/{id} and a page of GET /cards with a bare Koa handler for the same query, with few and
 * many cards.
 */
export async function run(): Promise<void> {
  const service = await startService({ worker: false });
  const entry = new URL('./bare-reads/server.ts', import.meta.url);
  const bare = await startBareServer(entry, [service.databaseUrl, service.partnerId]);
  const ours = new Pool(service.origin, { connections: IN_FLIGHT });
  const floor = new Pool(bare.origin, { connections: IN_FLIGHT });
  try {
    for (const [from, cards] of [
      [1, scaled(10_000)],
      [scaled(10_000) + 1, scaled(1_000_000)],
    ] as const) {
      await seedCards(service.databaseUrl, service.partnerId, from, cards);
      const anyCard = () => seededCardId(1 + Math.floor(Math.random() * cards));
      console.log(`${cards} cards, ${IN_FLIGHT} in flight`);
      await compare('GET /cards/{id}', scaled(4_000), () => `/cards/${anyCard()}`);
      await compare('GET /cards, a page of 20', scaled(2_000), () => `/cards?starting_after=${anyCard()}`);
    }
  } finally {
    await Promise.all([ours.close(), floor.close()]);
    await bare.stop();
    await service.stop();
  }

  async function compare(name: string, count: number, path: () => string): Promise<void> {
    const get = (pool: Pool) => async () => void (await ask({ pool, key: service.testKey }, 'GET', path()));
    const measured = await measureInTurn(
      { floor: get(floor), ours: get(ours) },
      { rounds: ROUNDS, count, inFlight: IN_FLIGHT },
    );
    console.log(describe(`  bare ${name}`, median(measured.floor)));
    console.log(describe(`  ${name}`, median(measured.ours)));
    console.log(`  ratio: ${printedRatio(measured.ours, measured.floor, 'perSecond')} (goal at least 0.8)`);
  }
}
