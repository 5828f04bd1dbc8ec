import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { negotiateFees } from '../accounts/partners.ts';
import { setCurrentProduct } from '../cards/products.ts';
import { openOrm } from '../platform/db/orm.ts';
import {
  connectTo,
  createTestDatabase,
  openOperatorOrm,
  operatorUrlOf,
  ownerUrlOf,
} from '../test/support/postgres.ts';
import { increaseNetwork } from './many-payments/increase.ts';
import { IssuedPayments, tokenDigits } from './many-payments/issued-payments.ts';
import { lithicNetwork } from './many-payments/lithic.ts';
import { seedPayments } from './many-payments/seed-payments.ts';
import { type BenchNetwork, startBenchIssuer } from './many-payments/start-issuer.ts';
import { operate } from './many-payments/start-operator.ts';
import { scaled } from './support/scale.ts';
import { seedFundedCards } from './support/seed.ts';

const MANY = scaled(100_000);
const FEW = Math.ceil(MANY / 10);
/** One more than a hundredth, so that every card has payments of both kinds. */
const cardsFor = (count: number): number => Math.floor(count / 100) + 1;
const CARD_AGE_MS = 30 * 86_400_000;
const SAMPLED_EVERY_MS = 20;

/**
 * Reconciles a week's payments with an issuer that lists the same but for a handful, and a tenth as many: how
 * fast, in how much memory, and how long `ledger check` takes for them.
 */
export async function run(): Promise<void> {
  console.log('PostgreSQL alone, no Temporal');
  for (const makeNetwork of [lithicNetwork, increaseNetwork]) {
    const few = await reconcileMany(makeNetwork, FEW);
    const many = await reconcileMany(makeNetwork, MANY);
    console.log(
      `  ratio of the peaks: ${(many / few).toFixed(2)}, with ${MANY / FEW} times as many payments`,
    );
  }
}

type MakeNetwork = (payments: IssuedPayments) => BenchNetwork;

/** @returns the most memory that the process had, in MB */
async function reconcileMany(makeNetwork: MakeNetwork, count: number): Promise<number> {
  const databaseUrl = await createTestDatabase();
  const { payments, network } = await seed(databaseUrl, makeNetwork, count);
  const issuer = await startBenchIssuer(network);
  const watch = await watchTransactions(databaseUrl);
  const env = {
    DATABASE_URL: operatorUrlOf(databaseUrl),
    ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    CARD_NETWORK: network.name,
    ...network.variables(issuer.url),
  };
  try {
    const { printed, seconds, peakMb } = await operate(['network', 'reconcile'], env);
    requireFound(payments, JSON.parse(printed));
    const longestMs = await watch.stop();
    const check = await operate(['ledger', 'check'], env);
    // What differs is looked at twice, from the beginning.
    const of = `${count.toLocaleString('en')} payments on ${cardsFor(count).toLocaleString('en')} cards`;
    console.log(`${network.name}, ${of}:`);
    console.log(
      `  two looks in ${seconds.toFixed(1)} s: ${((2 * count) / seconds).toFixed(0)} payments/s, ${network.pages()} pages`,
    );
    console.log(`  peak ${peakMb.toFixed(0)} MB; longest transaction ${longestMs.toFixed(0)} ms`);
    console.log(
      `  the ${payments.differences.size} differences were found, and no other; all but one were corrected`,
    );
    console.log(`  ledger check: ${check.seconds.toFixed(1)} s, nothing found`);
    return peakMb;
  } finally {
    await watch.stop();
    issuer.stop();
  }
}

async function seed(
  databaseUrl: string,
  makeNetwork: MakeNetwork,
  count: number,
): Promise<{ payments: IssuedPayments; network: BenchNetwork }> {
  const orm = await openOperatorOrm(databaseUrl);
  const service = await openOrm({ databaseUrl, poolSize: 4 });
  try {
    const operator = { orm, actor: 'bench' };
    await setCurrentProduct(operator, { code: 'BENCH', bin: '424242', scheme: 'visa' });
    const madeAt = new Date(Date.now() - CARD_AGE_MS);
    const of = { mode: 'live', accounts: 1, cardsEach: cardsFor(count), madeAt } as const;
    const cards = await seedFundedCards(operator, service, databaseUrl, of);
    const noFees = { transactionFlatCents: 0, transactionBasisPoints: 0 };
    await negotiateFees(operator, cards[0]?.partnerId ?? '', noFees);
    // The network has our ids for them.
    const payments = new IssuedPayments(
      count,
      cards.map(({ cardId }) => cardId),
    );
    const network = makeNetwork(payments);
    await seedPayments(service, databaseUrl, { payments, network, cards });
    return { payments, network };
  } finally {
    await service.close();
    await orm.close();
  }
}

/** Watches how long the operator's transactions take. */
async function watchTransactions(databaseUrl: string): Promise<{ stop(): Promise<number> }> {
  const owner = await connectTo(ownerUrlOf(databaseUrl));
  const stopping = new AbortController();
  let longestMs = 0;
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      const { rows } = await owner.query<{ ms: number }>(LONGEST);
      longestMs = Math.max(longestMs, rows[0]?.ms ?? 0);
      await sleep(SAMPLED_EVERY_MS);
    }
    await owner.end();
  })();
  return {
    stop: async () => {
      stopping.abort();
      await watching;
      return longestMs;
    },
  };
}

const LONGEST = `
  SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start) * 1000), 0)::float8 AS ms FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`;

interface Entry {
  issuer_id: string;
  corrected?: true;
}

/** @throws Error unless exactly what differs was found, and corrected if that is possible */
function requireFound(
  { differences }: IssuedPayments,
  found: Record<'missing_here' | 'missing_at_issuer' | 'different', Entry[]>,
): void {
  const entries = [...found.missing_here, ...found.different, ...found.missing_at_issuer];
  const said = new Set(
    entries.map(({ issuer_id, corrected }) => `${issuer_id.slice(-12)} ${corrected === true}`),
  );
  const expected = [...differences].map(
    ([number, difference]) => `${tokenDigits(number)} ${difference !== 'not at the issuer'}`,
  );
  if (said.size !== expected.length || expected.some((one) => !said.has(one)))
    throw new Error(`expected ${expected}, found ${JSON.stringify(found)}`);
}
