import { HandChain, type HandChainOptions } from '../../../dev/tron/chain.ts';
import { type FakeNode, type FakeNodeOptions, startFakeNode } from '../../../dev/tron/fake-node.ts';
import type { Config } from '../../../platform/config/service.ts';
import type { TronConfig } from '../../../platform/config/tron.ts';
import { query } from '../../../platform/db/sql.ts';
import { startTestStack, type TestPartner } from '../stack.ts';
import { until } from '../until.ts';
import { TEST_TRON_OF_FAKES } from './seed-deposits.ts';

/** Longer than the clocks' allowance before the first address, so that the scan begins within the chain. */
const OLDER_THAN_SKEW_MS = 330_000;

/** A block is solid after a few others, so that a test need not make many. */
export function newChain(options: HandChainOptions = {}): HandChain {
  const chain = new HandChain({
    startTime: new Date(Math.floor(Date.now() / 1_000) * 1_000 - OLDER_THAN_SKEW_MS),
    everyMs: 30_000,
    solidAfterBlocks: 2,
    ...options,
  });
  chain.mineMany(8);
  return chain;
}

export async function startNodes(chain: HandChain, names: readonly string[]): Promise<FakeNode[]> {
  return Promise.all(
    names.map((name): Promise<FakeNode> => startFakeNode(chain, { name } satisfies FakeNodeOptions)),
  );
}

export const tronConfigOf = (nodes: readonly FakeNode[]): TronConfig => ({
  ...TEST_TRON_OF_FAKES,
  scanIntervalMs: 100,
  confirmingNodes: Math.min(2, nodes.length),
  nodes: nodes.map(({ url }) => {
    const [full = '', solidity = full] = url.split('|');
    return { full, solidity };
  }),
});

/** The service with fake nodes of a chain that the test drives. */
export async function startDepositStack(
  overrides: Partial<Config> = {},
  options: { nodes?: readonly string[]; worker?: boolean; chain?: HandChain } = {},
) {
  const chain = options.chain ?? newChain();
  const nodes = await startNodes(chain, options.nodes ?? ['one']);
  const stack = await startTestStack(
    { tron: tronConfigOf(nodes), ...overrides },
    { worker: options.worker ?? true },
  );
  return {
    stack,
    chain,
    nodes,
    stop: async () => {
      await stack.stop();
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

export type DepositStack = Awaited<ReturnType<typeof startDepositStack>>;

export async function openAddress(
  partner: TestPartner,
  amountCents: number,
): Promise<{ id: string; address: string }> {
  const { status, text, json } = await partner.call('POST', '/funding/deposit-address', {
    mode: 'live',
    body: { amount: amountCents },
  });
  if (status !== 201) throw new Error(`no address was given out: ${status} ${text}`);
  return { id: json.id, address: json.address };
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the contract promises.
export async function readDeposit(partner: TestPartner, id: string): Promise<any> {
  const { json } = await partner.call('GET', '/funding/deposits?limit=100', { mode: 'live' });
  return json.data.find((deposit: { id: string }) => deposit.id === id);
}

export const untilDeposit = (partner: TestPartner, id: string, status: string) =>
  until(`deposit ${id} is ${status}`, async () => {
    const deposit = await readDeposit(partner, id);
    return deposit?.status === status ? deposit : undefined;
  });

/** Waits until everything up to this block is recorded and judged. */
export async function untilScanned({ stack }: DepositStack, blockNumber: number): Promise<void> {
  await until(`block ${blockNumber} was taken, and what was in it judged`, async () => {
    const [row] = await query<{ done: boolean }>(
      stack.orm.em.fork(),
      `SELECT coalesce((SELECT block_number >= $1 FROM chain_scan), false)
         AND NOT EXISTS (SELECT FROM deposit_payment WHERE status = 'found')
         AND NOT EXISTS (SELECT FROM deposit d JOIN chain_scan s ON s.network = d.network
           WHERE d.status = 'awaiting_payment' AND d.expires_at < s.block_time) AS done`,
      [blockNumber],
    );
    return row?.done;
  });
}

export interface Left {
  status: string;
  receivedCents: number;
  /** `credited`, `returned`, or why it waits; in the chain's order. */
  payments: string[];
  confirmedEvents: number;
  /** Of the whole account. */
  balanceCents: number;
}

export async function readLeft(
  { stack }: Pick<DepositStack, 'stack'>,
  partner: TestPartner,
  depositId: string,
): Promise<Left> {
  const [seen, events, balance] = await Promise.all([
    readDeposit(partner, depositId),
    partner.call('GET', '/events?type=deposit.confirmed&limit=100', { mode: 'live' }),
    partner.call('GET', '/balance', { mode: 'live' }),
  ]);
  const payments = await query<{ judged: string }>(
    stack.orm.em.fork(),
    `SELECT CASE status WHEN 'in_review' THEN review_reason ELSE status END AS judged FROM deposit_payment
     WHERE deposit_id = $1 ORDER BY block_number, transaction_index, log_index`,
    [depositId],
  );
  const own = events.json.data.filter(
    (event: { data: { deposit: { id: string } } }) => event.data.deposit.id === depositId,
  );
  return {
    status: seen.status,
    receivedCents: seen.received_amount,
    payments: payments.map(({ judged }) => judged),
    confirmedEvents: own.length,
    balanceCents: balance.json.total,
  };
}
