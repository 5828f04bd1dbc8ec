import { randomBytes, randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { createApiKey } from '../accounts/api-keys.ts';
import type { ClaimOperation } from '../domain/claim-operation.ts';
import { NOWHERE } from '../domain/payment.ts';
import { simulateOnAuthorization, simulateOnCard } from '../payments/simulate.ts';
import { KeyRing } from '../platform/crypto/key-ring.ts';
import { newId } from '../platform/crypto/new-id.ts';
import { createNotifier, notifyEvents } from '../platform/db/notifications.ts';
import { openOrm } from '../platform/db/orm.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import type { KeyedResponse } from '../requests/respond-once.ts';
import { AMOUNT_CENTS, createBareAuthorizations } from './bare-authorizations/bare-authorizations.ts';
import { ask } from './support/accounts.ts';
import { startBareServer } from './support/bare-server.ts';
import { openBenchDatabase, requireSoundLedger } from './support/database.ts';
import {
  describe,
  type Measurement,
  measure,
  measureInTurn,
  median,
  printedRatio,
} from './support/measure.ts';
import { createNetworkRequests } from './support/network.ts';
import { scaled } from './support/scale.ts';
import { type BenchCard, seedFundedCards } from './support/seed.ts';
import { startService } from './support/service.ts';

const ROUNDS = scaled(5);
/** As many connections as the API has. */
const POOL_SIZE = 20;
const TTL_MS = 168 * 3_600_000;

/** What is done with authorizations, by our commands or by bare SQL. */
interface Authorizations {
  /** @returns the authorization's id */
  decide(card: BenchCard): Promise<string>;
  clear(card: BenchCard, authorizationId: string): Promise<void>;
  reverse(card: BenchCard, authorizationId: string): Promise<void>;
}

const STEPS = ['decide', 'clear', 'reverse'] as const;
type Round = Record<(typeof STEPS)[number], Measurement>;

/**
 * Compares authorizations in test mode, their clearings and their reversals with bare SQL of the same locks
 * and rows; then requests over HTTP with a bare Koa handler.
 */
export async function run(): Promise<void> {
  await compareCommands();
  await compareRequests();
}

async function compareCommands(): Promise<void> {
  const { databaseUrl, operator } = await openBenchDatabase();
  const orm = await openOrm({ databaseUrl, poolSize: POOL_SIZE });
  const ours = createOurs({ orm, ring: new KeyRing([{ id: 'k1', secret: randomBytes(32) }]) });
  const bare = createBareAuthorizations(databaseUrl, POOL_SIZE);
  try {
    for (const cardsEach of [1, scaled(1_000)]) {
      const cards = await seedFundedCards(operator, orm, databaseUrl, {
        mode: 'test',
        accounts: 1,
        cardsEach,
      });
      // A warm-up: connections are made, and code is compiled.
      for (const one of [bare, ours]) await measureRound(one, { cards, inFlight: 16, count: scaled(500) });
      for (const [inFlight, count] of [
        [1, scaled(300)],
        [16, scaled(1_000)],
      ] as const) {
        const rounds: { floor: Round; ours: Round }[] = [];
        for (let round = 0; round < ROUNDS; round++) {
          const load = { cards, inFlight, count };
          rounds.push({ floor: await measureRound(bare, load), ours: await measureRound(ours, load) });
        }
        console.log(`one account, ${cardsEach} card(s), ${inFlight} in flight`);
        for (const step of STEPS) {
          const floor = rounds.map((round) => round.floor[step]);
          const our = rounds.map((round) => round.ours[step]);
          console.log(describe(`  bare SQL, ${step}`, median(floor)));
          console.log(describe(`  ${step}`, median(our)));
          console.log(`  ratio: ${printedRatio(our, floor, 'perSecond')} (goal at least 0.7)`);
        }
      }
    }
    await requireSoundLedger(orm);
  } finally {
    await bare.stop();
    await orm.close();
    await operator.orm.close();
  }
}

/** Of what is authorized, half is cleared and half is reversed. */
async function measureRound(
  authorizations: Authorizations,
  { cards, inFlight, count }: { cards: readonly BenchCard[]; inFlight: number; count: number },
): Promise<Round> {
  const open: { card: BenchCard; id: string }[] = [];
  const decide = async () => {
    const card = cards[Math.floor(Math.random() * cards.length)] as BenchCard;
    open.push({ card, id: await authorizations.decide(card) });
  };
  const next = () => {
    const one = open.pop();
    if (one === undefined) throw new Error('no authorization is left');
    return one;
  };
  const decided = await measure(count, inFlight, decide);
  const cleared = await measure(count, inFlight, () => {
    const { card, id } = next();
    return authorizations.clear(card, id);
  });
  await measure(count, inFlight, decide);
  const reversed = await measure(count, inFlight, () => {
    const { card, id } = next();
    return authorizations.reverse(card, id);
  });
  return { decide: decided, clear: cleared, reverse: reversed };
}

/**
 * The commands of the API in test mode, each with an Idempotency-Key and with the NOTIFY about its events.
 */
export function createOurs(context: CommandContext): Authorizations {
  const eventsWritten = createNotifier(() => notifyEvents(context.orm), console.error);
  const finish = ({ response }: KeyedResponse): string => {
    if (response.status > 299) throw new Error(`${response.status}: ${response.body}`);
    eventsWritten();
    return JSON.parse(response.body).id;
  };
  return {
    async decide(card) {
      const request = newRequest(card, 'authorize_card', card.cardId);
      const asked = { type: 'authorization', amountCents: AMOUNT_CENTS, isFinal: true } as const;
      const message = { id: `simulated/${request.requestId}`, ...asked, merchant: NOWHERE };
      const simulated = { message, networkPaymentId: null, ttlMs: TTL_MS };
      return finish(await simulateOnCard(context, request, simulated));
    },
    async clear(card, authorizationId) {
      const request = newRequest(card, 'capture_authorization', null);
      const asked = { type: 'clearing', messageId: `simulated/${request.requestId}`, ttlMs: TTL_MS } as const;
      finish(await simulateOnAuthorization(context, request, authorizationId, asked));
    },
    async reverse(card, authorizationId) {
      const request = newRequest(card, 'reverse_authorization', null);
      const asked = { type: 'reversal', messageId: `simulated/${request.requestId}`, ttlMs: TTL_MS } as const;
      finish(await simulateOnAuthorization(context, request, authorizationId, asked));
    },
  };
}

function newRequest(
  { partnerId }: BenchCard,
  operation: ClaimOperation,
  cardId: string | null,
): KeyedRequest {
  const requestId = randomUUID();
  return {
    claimId: newId('claim'),
    partnerId,
    mode: 'test',
    key: requestId,
    operation,
    resourceId: null,
    cardId,
    fingerprint: Buffer.alloc(32),
    requestId,
    apiKeyId: null,
    clientAddress: null,
  };
}

/**
 * Compares the p50 of a decision over the whole HTTP path, asked by the network and in test mode, with a bare
 * Koa handler that runs the statements of test mode. Both modes write as many rows: the message that asked,
 * or the request's claim.
 */
async function compareRequests(): Promise<void> {
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
  const entry = new URL('./bare-authorizations/server.ts', import.meta.url);
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
