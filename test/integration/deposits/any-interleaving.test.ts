import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { rescanFrom } from '../../../commands/deposits/chain-scan.ts';
import { query } from '../../../db/sql.ts';
import { addressHash } from '../../../dev/tron/address.ts';
import type { HandChain } from '../../../dev/tron/chain.ts';
import { FAKE_USDT_CONTRACT, failedTransfer, tokenTransfer } from '../../../dev/tron/drafts.ts';
import type { Fault } from '../../../dev/tron/faults.ts';
import {
  type DepositStack,
  openAddress,
  readLeft,
  startDepositStack,
  untilScanned,
} from '../../support/deposits/deposit-stack.ts';
import { assertLedgerClean } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestPartner } from '../../support/stack.ts';

const RUNS = 3;
const CENTS = [100, 2_500, 999_999];
const FAULTS: Fault[] = [
  'empty list',
  'empty object',
  'overloaded',
  'rate limited',
  'truncated',
  'disconnect',
];

/** What happens, one after the other, while the service is at work. Numbers pick what there is, by their remainder. */
type Happening =
  | { does: 'open'; amount: number }
  | { does: 'pay'; whom: number; microUsdtMore: number; times: number }
  | { does: 'fail to pay'; whom: number }
  | { does: 'mine'; blocks: number }
  | { does: 'fork' }
  | { does: 'let it work'; forMs: number }
  | { does: 'fault'; node: number; fault: Fault; times: number }
  | { does: 'lag'; node: number; blocks: number }
  | { does: 'kill connections' }
  | { does: 'restart worker' }
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
  { weight: 4, arbitrary: fc.record({ does: fc.constant('let it work' as const), forMs: fc.nat(400) }) },
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
  { weight: 2, arbitrary: fc.record({ does: fc.constant('kill connections' as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('restart worker' as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('rescan' as const), from: fc.nat() }) },
);

interface Opened {
  partner: TestPartner;
  id: string;
  address: string;
  amountCents: number;
}

describe('the service, whatever happens to blocks, nodes, connections and workers,', function () {
  this.timeout(600_000);

  it('credits each payment once, or leaves it to an operator once', async () => {
    await fc.assert(fc.asyncProperty(fc.array(anything, { minLength: 25, maxLength: 40 }), play), {
      numRuns: RUNS,
      endOnFailure: true,
      verbose: 1,
    });
  });
});

async function play(happenings: Happening[]): Promise<void> {
  const deposits = await startDepositStack({ logLevel: 'silent' }, { nodes: ['one', 'two'] });
  try {
    const partners = [await deposits.stack.createPartner(), await deposits.stack.createPartner()];
    const opened: Opened[] = [];
    const open = async (amountCents: number) => {
      const partner = partners[opened.length % 2] as TestPartner;
      opened.push({ partner, amountCents, ...(await openAddress(partner, amountCents)) });
    };
    await open(2_500);
    for (const happening of happenings) await happen(deposits, opened, open, happening);

    for (const { faults, view } of deposits.nodes) {
      faults.clear();
      view.reform();
    }
    deposits.chain.solidify();
    await untilScanned(deposits, deposits.chain.solidNumber());
    await assertAllThere(deposits, opened);
    await assertLedgerClean(deposits.stack);
  } finally {
    await deposits.stop();
  }
}

async function happen(
  { stack, chain, nodes }: DepositStack,
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
    case 'let it work':
      return sleep(happening.forMs);
    case 'fault':
      nodes[happening.node]?.faults.add(happening);
      return;
    case 'lag': {
      const node = nodes[happening.node];
      if (node !== undefined) node.view.lagBlocks = happening.blocks;
      return;
    }
    case 'kill connections':
      await asOwner(
        stack.config.databaseUrl,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'card-issuing-worker'`,
      );
      return;
    case 'restart worker':
      await stack.stopWorker();
      await stack.startWorker();
      return;
    case 'rescan': {
      const [scan] = await query<{ block_number: string }>(
        stack.orm.em.fork(),
        'SELECT block_number FROM chain_scan',
      );
      const stands = Number(scan?.block_number ?? 0);
      // By then it may have moved on, never back.
      if (stands > 0)
        await rescanFrom(stack.operator, { network: 'private', fromBlock: 1 + (happening.from % stands) });
    }
  }
}

/** Holds what is left to what the chain has, read without the service's code. */
async function assertAllThere(deposits: DepositStack, opened: readonly Opened[]): Promise<void> {
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
