import assert from 'node:assert/strict';
import fc from 'fast-check';
import type pg from 'pg';
import { isOutage } from '../../api/http/errors.ts';
import { rescanFrom } from '../../deposits/chain-scan.ts';
import { addressHash } from '../../dev/tron/address.ts';
import type { HandChain } from '../../dev/tron/chain.ts';
import { FAKE_USDT_CONTRACT, failedTransfer, tokenTransfer } from '../../dev/tron/drafts.ts';
import type { Fault } from '../../dev/tron/faults.ts';
import { query } from '../../platform/db/sql.ts';
import { aroundCommits } from '../support/crash/around-commits.ts';
import { newChain, openAddress, readLeft } from '../support/deposits/deposit-stack.ts';
import {
  type ScannedChain,
  startAddressStack,
  startScannedChain,
} from '../support/deposits/scanned-chain.ts';
import { assertLedgerClean } from '../support/money.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const RUNS = 4;
const HOUR_MS = 3_600_000;
const CENTS = [100, 2_500, 999_999];
const FAULTS: Fault[] = [
  'empty list',
  'empty object',
  'overloaded',
  'rate limited',
  'truncated',
  'disconnect',
];

/** What happens, one after the other. Numbers pick what there is, by their remainder. */
type Happening =
  | { does: 'open'; amount: number }
  | { does: 'pay'; whom: number; microUsdtMore: number; times: number }
  | { does: 'fail to pay'; whom: number }
  | { does: 'mine'; blocks: number }
  | { does: 'fork' }
  | { does: 'work'; workers: number }
  | { does: 'lose a connection'; when: Cut['when']; commits: number }
  | { does: 'fault'; node: number; fault: Fault; times: number }
  | { does: 'lag'; node: number; blocks: number }
  | { does: 'rescan'; from: number };

const anything: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ does: fc.constant('open' as const), amount: fc.nat(2) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      does: fc.constant('pay' as const),
      whom: fc.nat(),
      microUsdtMore: fc.constantFrom(0, 0, 0, -10_000, 1),
      times: fc.constantFrom(1, 1, 1, 2),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('fail to pay' as const), whom: fc.nat() }) },
  {
    weight: 5,
    arbitrary: fc.record({ does: fc.constant('mine' as const), blocks: fc.integer({ min: 1, max: 60 }) }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('fork' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({ does: fc.constant('work' as const), workers: fc.constantFrom(1, 1, 2, 3) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant('lose a connection' as const),
      when: fc.constantFrom('before' as const, 'after' as const),
      commits: fc.nat(3),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant('fault' as const),
      node: fc.nat(1),
      fault: fc.constantFrom(...FAULTS),
      times: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant('lag' as const),
      node: fc.nat(1),
      blocks: fc.constantFrom(0, 1, 1_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('rescan' as const), from: fc.nat() }) },
);

/** Where the connection to one database breaks: before or after it is sent the COMMIT that follows so many others. */
interface Cut {
  of: string;
  when: 'before' | 'after';
  commits: number;
}

let cut: Cut | undefined;
const cutIf = (when: Cut['when']) => async (client: pg.Client) => {
  if (cut?.when !== when || cut.of !== client.database || cut.commits-- > 0) return;
  cut = undefined;
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  throw new Error('Connection terminated unexpectedly');
};
aroundCommits(cutIf('before'), cutIf('after'));

interface Opened {
  partner: TestPartner;
  id: string;
  address: string;
  amountCents: number;
}

describe('the scan of a chain, whatever happens to blocks, nodes and connections,', () => {
  let stack: TestStack;
  before(async () => {
    stack = await startAddressStack();
  });
  after(() => stack.stop());

  it('credits each payment once, or leaves it to an operator once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anything, { minLength: 25, maxLength: 40 }), (happenings) =>
        play(stack, happenings),
      ),
      { numRuns: RUNS, verbose: 1 },
    );
  });
});

async function play(stack: TestStack, happenings: Happening[]): Promise<void> {
  // Older than the first deposit of the scripts before.
  const chain = newChain({ startTime: new Date(Date.now() - HOUR_MS) });
  chain.mineUntil(new Date());
  const scanned = await startScannedChain(stack, { names: ['one', 'two'], chain });
  try {
    const partners = [await stack.createPartner(), await stack.createPartner()];
    const opened: Opened[] = [];
    const open = async (amountCents: number) => {
      const partner = partners[opened.length % 2] as TestPartner;
      opened.push({ partner, amountCents, ...(await openAddress(partner, amountCents)) });
    };
    await open(2_500);
    for (const happening of happenings) await happen(scanned, opened, open, happening);

    for (const { faults, view } of scanned.nodes) {
      faults.clear();
      view.reform();
    }
    chain.solidify();
    await until('all blocks are read, and what was in them judged', async () => {
      await scanned.look();
      return isRead(stack, chain.solidNumber());
    });
    await assertAllThere(scanned, opened);
    await assertLedgerClean(stack);
  } finally {
    await scanned.stop();
  }
}

async function happen(
  { stack, chain, nodes, look }: ScannedChain,
  opened: readonly Opened[],
  open: (amountCents: number) => Promise<void>,
  happening: Happening,
): Promise<void> {
  const pick = (whom: number) => opened[whom % opened.length] as Opened;
  switch (happening.does) {
    case 'open':
      return open(CENTS[happening.amount] ?? 100);
    case 'pay': {
      const { address: to, amountCents } = pick(happening.whom);
      const valueMicroUsdt = BigInt(amountCents) * 10_000n + BigInt(happening.microUsdtMore);
      chain.mine([tokenTransfer(Array.from({ length: happening.times }, () => ({ to, valueMicroUsdt })))]);
      return;
    }
    case 'fail to pay': {
      const { address: to, amountCents } = pick(happening.whom);
      chain.mine([failedTransfer({ to, valueMicroUsdt: BigInt(amountCents) * 10_000n }, 'REVERT', 'logs')]);
      return;
    }
    case 'mine':
      chain.mineMany(happening.blocks, 1_000);
      return;
    case 'fork':
      chain.fork(1);
      return;
    case 'work':
      await Promise.all(Array.from({ length: happening.workers }, look));
      return;
    case 'lose a connection': {
      const { when, commits } = happening;
      cut = { of: new URL(stack.config.databaseUrl).pathname.slice(1), when, commits };
      await look().catch((error: unknown) => {
        if (!isOutage(error)) throw error;
      });
      cut = undefined;
      return;
    }
    case 'fault':
      nodes[happening.node]?.faults.add(happening);
      return;
    case 'lag': {
      const node = nodes[happening.node];
      if (node !== undefined) node.view.lagBlocks = happening.blocks;
      return;
    }
    case 'rescan': {
      const [scan] = await query<{ block_number: string }>(
        stack.orm.em.fork(),
        'SELECT block_number FROM chain_scan',
      );
      const stands = Number(scan?.block_number ?? 0);
      if (stands > 0)
        await rescanFrom(stack.operator, { network: 'private', fromBlock: 1 + (happening.from % stands) });
    }
  }
}

async function isRead({ orm }: TestStack, blockNumber: number): Promise<boolean> {
  const rows = await query(
    orm.em.fork(),
    `SELECT FROM chain_scan WHERE block_number = $1 AND NOT EXISTS (SELECT FROM unconfirmed_payment)
       AND NOT EXISTS (SELECT FROM deposit_payment WHERE status = 'found')`,
    [blockNumber],
  );
  return rows.length === 1;
}

/** Holds what is left to what the chain has, read without the service's code. */
async function assertAllThere(deposits: ScannedChain, opened: readonly Opened[]): Promise<void> {
  const balances = new Map<string, number>();
  for (const { partner, id, address, amountCents } of opened) {
    const values = transfersTo(deposits.chain, address);
    const exactAt = values.indexOf(BigInt(amountCents) * 10_000n);
    const expected = values.map((value, index) => {
      if (value !== BigInt(amountCents) * 10_000n) return 'other_amount';
      return index === exactAt ? 'credited' : 'already_paid';
    });
    const isCredited = exactAt >= 0;
    balances.set(partner.id, (balances.get(partner.id) ?? 0) + (isCredited ? amountCents : 0));
    const { balanceCents, ...left } = await readLeft(deposits, partner, id);
    const unpaid = values.length === 0;
    assert.deepEqual(left, {
      status: unpaid
        ? 'awaiting_payment'
        : expected.every((one) => one === 'credited')
          ? 'confirmed'
          : 'needs_review',
      receivedCents: Number(values.reduce((sum, value) => sum + value, 0n) / 10_000n),
      payments: expected,
      confirmedEvents: isCredited ? 1 : 0,
    });
  }
  for (const { partner } of opened) {
    const { json } = await partner.call('GET', '/balance', { mode: 'live' });
    assert.equal(json.total, balances.get(partner.id));
  }
}

function transfersTo(chain: HandChain, address: string): bigint[] {
  const recipient = addressHash(address) ?? '';
  const values: bigint[] = [];
  for (let number = 1; number <= chain.solidNumber(); number++) {
    for (const { draft } of chain.block(number)?.transactions ?? []) {
      if (draft.result !== 'SUCCESS') continue;
      for (const log of draft.logs) {
        const isOurs = log.address === addressHash(FAKE_USDT_CONTRACT) && log.topics[2]?.endsWith(recipient);
        if (isOurs) values.push(BigInt(`0x${log.data}`));
      }
    }
  }
  return values;
}
