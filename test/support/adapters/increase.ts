import { type FakeIncrease, startFakeIncrease } from '../../../dev/increase/fake-increase.ts';
import type { IssueCardRequest } from '../../../issuers/card-network.ts';
import { createIncreaseClient } from '../../../issuers/increase/client.ts';
import { UNLIMITED } from '../../../issuers/request-budget.ts';
import type { IncreaseConfig } from '../../../platform/config/card-networks.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import { createLogger } from '../../../platform/process/logger.ts';
import { startUnrulyProxy } from './unruly-proxy.ts';

export const WEBHOOK_SECRET = 'shared secret of both subscriptions'.replaceAll(' ', '-');

export const increaseConfigOf = (fake: FakeIncrease): IncreaseConfig => ({
  apiKey: fake.apiKey,
  webhookSecret: WEBHOOK_SECRET,
  baseUrl: fake.url,
  fundingAccountId: fake.fundingAccountId,
  programId: null,
  entityId: null,
  asksForDecisions: true,
  requestsPerSecond: 1_000,
});

/** A fake Increase and our client of it, behind a proxy that breaks requests, with what the client logs. */
export async function startIncreaseClient({
  keyLifetimeMs = 20 * 3_600_000,
  ...configured
}: Partial<IncreaseConfig> & { keyLifetimeMs?: number } = {}) {
  const fake = await startFakeIncrease();
  const proxy = await startUnrulyProxy(fake.url);
  const pausesMs: number[] = [];
  const underWay = { isUnderWay: true };
  const ours = { isInUse: false };
  const clock = { aheadMs: 0 };
  const turns = { wait: async (_requests: number) => {} };
  const logLines: string[] = [];
  const logger = createLogger('worker', 'info', { write: (line: string) => logLines.push(line) });
  const client = createIncreaseClient({
    config: { ...increaseConfigOf(fake), baseUrl: proxy.url, ...configured },
    budget: {
      ...UNLIMITED,
      takeTurn: (_turn, _signal, requests = 1) => turns.wait(requests),
      noteRetryAfter: async (waitMs) => void pausesMs.push(waitMs),
    },
    logger,
    keyLifetimeMs,
    nowMs: () => Date.now() + clock.aheadMs,
    isUnderWay: async () => underWay.isUnderWay,
    isInUse: async () => ours.isInUse,
  });
  return {
    fake,
    client,
    proxy,
    pausesMs,
    underWay,
    ours,
    /** By how much the client's clock is ahead. */
    clock,
    turns,
    logLines,
    stop: async () => {
      await client.close();
      await proxy.close();
      await fake.stop();
    },
  };
}

export const orderCard = (amountCents = 5_000): IssueCardRequest => ({
  token: newId('card'),
  productCode: 'TEST-USD',
  bin: '424242',
  amountCents,
  cardholderName: 'Ada Lovelace',
});

/** What the fake has made for a card: the objects, however they came about, and the money. */
export function madeFor({ bank }: FakeIncrease, token: string) {
  const { accounts, cards, transfers, cents } = bank.books;
  const account = accounts.find(({ name }) => name === token);
  return {
    accounts: accounts.filter(({ name }) => name === token).length,
    cards: cards.filter(({ description }) => description === token).map(({ status }) => status),
    transfers: transfers.filter(({ description }) => description === token).map(({ status }) => status),
    cents: account === undefined ? 0 : (cents[account.id] ?? 0),
  };
}

export async function toArray<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}
