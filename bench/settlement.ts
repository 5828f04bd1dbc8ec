import { randomUUID } from 'node:crypto';
import { NOWHERE } from '../domain/payment.ts';
import { createMessageQueue } from '../payments/message-queue.ts';
import { createNotifier, notifyEvents } from '../platform/db/notifications.ts';
import { openOrm } from '../platform/db/orm.ts';
import { createBareSettlement } from './bare-settlement/bare-settlement.ts';
import { openBenchDatabase, requireSoundLedger } from './support/database.ts';
import { describe, measureInTurn, median, printedRatio } from './support/measure.ts';
import { scaled } from './support/scale.ts';
import { type BenchCard, seedFundedCards } from './support/seed.ts';

const ROUNDS = scaled(5);
const AMOUNT_CENTS = 100;
/** As many connections as the API has. */
const POOL_SIZE = 20;

/**
 * Compares purchases through the queue of the simulated network's messages with bare SQL that does the same writes, one transaction
 * each.
 */
export async function run(): Promise<void> {
  const { databaseUrl, operator } = await openBenchDatabase();
  const orm = await openOrm({ databaseUrl, poolSize: POOL_SIZE });
  const queue = createMessageQueue(
    orm,
    createNotifier(() => notifyEvents(orm), console.error),
  );
  const bare = createBareSettlement(databaseUrl, POOL_SIZE);
  try {
    for (const [name, accounts, cardsEach] of [
      ['one account, 50 cards', 1, 50],
      ['50 accounts, a card each', 50, 1],
    ] as const) {
      const cards = await seedFundedCards(operator, orm, databaseUrl, {
        mode: 'live',
        accounts,
        cardsEach,
      });
      for (const [inFlight, count] of [
        [1, scaled(500)],
        [16, scaled(1_500)],
        [64, scaled(3_000)],
      ] as const) {
        const { floor, ours } = await measureInTurn(
          {
            floor: () => bare.settle(pickCard(cards), AMOUNT_CENTS),
            ours: async () => void (await queue.take(purchaseOn(pickCard(cards)))),
          },
          { rounds: ROUNDS, count, inFlight },
        );
        console.log(`${name}, ${inFlight} in flight`);
        console.log(describe('  bare SQL, one transaction each', median(floor)));
        console.log(describe('  the queue of messages', median(ours)));
        console.log(`  ratio: ${printedRatio(ours, floor, 'perSecond')} (goal at least 0.7)`);
      }
    }
    await requireSoundLedger(orm);
  } finally {
    await bare.stop();
    await orm.close();
    await operator.orm.close();
  }
}

function pickCard(cards: readonly BenchCard[]): BenchCard {
  return cards[Math.floor(Math.random() * cards.length)] as BenchCard;
}

function purchaseOn({ partnerId, mode, cardId }: BenchCard) {
  const id = randomUUID();
  const message = {
    id,
    type: 'purchase',
    amountCents: AMOUNT_CENTS,
    isFinal: true,
    merchant: NOWHERE,
  } as const;
  const simulated = { message, networkPaymentId: id, ttlMs: 0, forced: true };
  const recorded = { networkCardId: cardId, said: { id, amountCents: AMOUNT_CENTS } };
  return { partnerId, mode, cardId, simulated, recorded };
}
