import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { NOWHERE } from '../domain/payment.ts';
import { readExpiryLag } from '../payments/expire.ts';
import { startExpiring } from '../payments/jobs.ts';
import { takeMessages } from '../payments/take-messages.ts';
import { KeyRing } from '../platform/crypto/key-ring.ts';
import { type Orm, openOrm } from '../platform/db/orm.ts';
import { transaction } from '../platform/db/transaction.ts';
import { createOurs } from './authorizations.ts';
import { openBenchDatabase, requireSoundLedger } from './support/database.ts';
import { describe, summarize } from './support/measure.ts';
import { scaled } from './support/scale.ts';
import { type BenchCard, seedFundedCards } from './support/seed.ts';

const CARDS = scaled(1_000);
const EACH = 100;
/** Enough decisions to know how long one takes while nothing expires. */
const ALONE = scaled(500);

/**
 * How long a worker takes for 100,000 authorizations of one account that are due, and a decision on another
 * account meanwhile.
 */
export async function run(): Promise<void> {
  const { databaseUrl, operator } = await openBenchDatabase();
  // The pools are those of a worker and of an API process.
  const worker = await openOrm({ databaseUrl, poolSize: 22, shares: { accounts: 16, eachAccount: 4 } });
  const api = await openOrm({ databaseUrl, poolSize: 20, shares: { accounts: 12, eachAccount: 4 } });
  try {
    const one = { mode: 'test', accounts: 1, cardsEach: CARDS } as const;
    const due = await seedFundedCards(operator, api, databaseUrl, one);
    const [other] = await seedFundedCards(operator, api, databaseUrl, { ...one, cardsEach: 1 });
    for (const card of due) await authorize(api, card);
    const ours = createOurs({ orm: api, ring: new KeyRing([{ id: 'k1', secret: randomBytes(32) }]) });
    const decide = async () => {
      const startedAt = performance.now();
      await ours.decide(other as BenchCard);
      return performance.now() - startedAt;
    };
    // A warm-up: connections are made, and code is compiled.
    for (let n = 0; n < ALONE; n++) await decide();
    const aloneFrom = performance.now();
    const alone: number[] = [];
    while (alone.length < ALONE) alone.push(await decide());
    const aloneMs = performance.now() - aloneFrom;

    const startedAt = performance.now();
    const expiring = startExpiring({ orm: worker, logger: pino({ level: 'error' }) });
    const meanwhile: number[] = [];
    while ((await readExpiryLag(operator.orm.em.fork())) > 0) meanwhile.push(await decide());
    const expiryMs = performance.now() - startedAt;
    await expiring.stop();

    const count = CARDS * EACH;
    console.log(`${count} authorizations on ${CARDS} cards of one account, all due, one worker:`);
    console.log(
      `  expired in ${(expiryMs / 1_000).toFixed(1)} s, ${((count / expiryMs) * 1_000).toFixed(0)}/s`,
    );
    const before = { perSecond: (alone.length / aloneMs) * 1_000, ...summarize(alone) };
    const during = { perSecond: (meanwhile.length / expiryMs) * 1_000, ...summarize(meanwhile) };
    console.log(describe('  a decision on another account, alone', before));
    console.log(describe('  the same meanwhile', during));
    console.log(`  ratio of the p50s: ${(during.p50Ms / before.p50Ms).toFixed(2)}`);
    await requireSoundLedger(api);
  } finally {
    await worker.close();
    await api.close();
    await operator.orm.close();
  }
}

/** Has merchants hold amounts on a card that are due at once. */
async function authorize(orm: Orm, { partnerId, mode, cardId }: BenchCard): Promise<void> {
  const messages = Array.from({ length: EACH }, (_, n) => {
    const id = `${cardId}/${n}`;
    const message = {
      id,
      type: 'authorization',
      amountCents: 100,
      isFinal: true,
      merchant: NOWHERE,
    } as const;
    const simulated = { message, networkPaymentId: id, ttlMs: 1 };
    return { partnerId, mode, cardId, simulated, recorded: null };
  });
  await transaction(orm, (tx) => takeMessages(tx, messages));
}
