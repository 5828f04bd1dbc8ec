import assert from 'node:assert/strict';
import { hashName, toBase58Address } from '../../../dev/tron/address.ts';
import {
  approval,
  type Draft,
  failedTransfer,
  tokenTransfer,
  trxTransfer,
} from '../../../dev/tron/drafts.ts';
import {
  type DepositStack,
  type Left,
  openAddress,
  readLeft,
  startDepositStack,
  untilDeposit,
  untilScanned,
} from '../../support/deposits/deposit-stack.ts';
import { assertLedgerClean } from '../../support/money.ts';
import type { TestPartner } from '../../support/stack.ts';

const CENTS = 2_500;
const EXACT = 25_000_000n;
const OTHER_TOKEN = toBase58Address(hashName('Tether USD, or so it says'));

interface Case {
  /** What the blocks have that come, one after the other. */
  blocks(address: string): Draft[][];
  left: Omit<Left, 'balanceCents' | 'confirmedEvents'>;
}

const pays = (to: string, valueMicroUsdt = EXACT): Draft => tokenTransfer({ to, valueMicroUsdt });
const confirmed = (receivedCents = CENTS) => ({ status: 'confirmed', receivedCents, payments: ['credited'] });
const inReview = (receivedCents: number, ...payments: string[]) => ({
  status: 'needs_review',
  receivedCents,
  payments,
});
const untouched = { status: 'awaiting_payment', receivedCents: 0, payments: [] };

const CASES: Record<string, Case> = {
  'the exact amount': { blocks: (to) => [[pays(to)]], left: confirmed() },
  'a cent less': { blocks: (to) => [[pays(to, 24_990_000n)]], left: inReview(2_499, 'other_amount') },
  'a cent more': { blocks: (to) => [[pays(to, 25_010_000n)]], left: inReview(2_501, 'other_amount') },
  'a fraction of a cent more': {
    blocks: (to) => [[pays(to, 25_000_001n)]],
    left: inReview(2_500, 'other_amount'),
  },
  'less than a cent': { blocks: (to) => [[pays(to, 9_999n)]], left: inReview(0, 'other_amount') },
  'the exact amount twice': {
    blocks: (to) => [[pays(to)], [pays(to)]],
    left: inReview(5_000, 'credited', 'already_paid'),
  },
  'the exact amount twice in one transaction': {
    blocks: (to) => [
      [
        tokenTransfer([
          { to, valueMicroUsdt: EXACT },
          { to, valueMicroUsdt: EXACT },
        ]),
      ],
    ],
    left: inReview(5_000, 'credited', 'already_paid'),
  },
  'two parts that add up': {
    blocks: (to) => [[pays(to, 10_000_000n), pays(to, 15_000_000n)]],
    left: inReview(2_500, 'other_amount', 'other_amount'),
  },
  'too little, then the exact amount': {
    blocks: (to) => [[pays(to, 1_000_000n)], [pays(to)]],
    left: inReview(2_600, 'other_amount', 'credited'),
  },
  'a transaction that was reverted': {
    blocks: (to) => [
      [
        failedTransfer({ to, valueMicroUsdt: EXACT }, 'REVERT'),
        failedTransfer({ to, valueMicroUsdt: EXACT }, 'REVERT', 'logs'),
      ],
    ],
    left: untouched,
  },
  'a transaction that ran out of energy': {
    blocks: (to) => [
      [
        failedTransfer({ to, valueMicroUsdt: EXACT }, 'OUT_OF_ENERGY'),
        failedTransfer({ to, valueMicroUsdt: EXACT }, 'OUT_OF_ENERGY', 'logs'),
      ],
    ],
    left: untouched,
  },
  'another token with the same name': {
    blocks: (to) => [[tokenTransfer({ to, valueMicroUsdt: EXACT }, OTHER_TOKEN)]],
    left: untouched,
  },
  'zero USDT, as address poisoning sends it': { blocks: (to) => [[pays(to, 0n)]], left: untouched },
  'an approval': { blocks: (to) => [[approval({ to, valueMicroUsdt: EXACT })]], left: untouched },
  'TRX instead of USDT': { blocks: (to) => [[trxTransfer(to, 25_000_000)]], left: untouched },
};

describe('a deposit', function () {
  this.timeout(180_000);
  let deposits: DepositStack;
  const opened = new Map<string, { partner: TestPartner; id: string; address: string }>();
  let lastBlock = 0;
  before(async () => {
    deposits = await startDepositStack();
    for (const name of [...Object.keys(CASES), 'one of two', 'two of two']) {
      const partner = await deposits.stack.createPartner(name);
      opened.set(name, { partner, ...(await openAddress(partner, CENTS)) });
    }
    const contents = Object.entries(CASES).map(([name, { blocks }]) => blocks(addressFor(name)));
    const both = tokenTransfer(
      ['one of two', 'two of two'].map((name) => ({ to: addressFor(name), valueMicroUsdt: EXACT })),
    );
    deposits.chain.mine(contents.flatMap(([first = []]) => first));
    deposits.chain.mine([...contents.flatMap(([, second = []]) => second), both]);
    lastBlock = deposits.chain.solidify().number;
    await untilScanned(deposits, lastBlock);
  });
  after(async () => {
    await assertLedgerClean(deposits.stack);
    await deposits.stop();
  });

  const addressFor = (name: string): string => opened.get(name)?.address ?? '';

  async function assertLeft(name: string, left: Case['left']): Promise<void> {
    const { partner, id } = opened.get(name) ?? assert.fail(name);
    const isCredited = left.payments.includes('credited');
    assert.deepEqual(await readLeft(deposits, partner, id), {
      ...left,
      confirmedEvents: isCredited ? 1 : 0,
      balanceCents: isCredited ? CENTS : 0,
    });
  }

  for (const [name, { left }] of Object.entries(CASES)) {
    it(`is ${left.status} after ${name}`, () => assertLeft(name, left));
  }

  it('is confirmed if one transaction pays it and another one', async () => {
    await assertLeft('one of two', confirmed());
    await assertLeft('two of two', confirmed());
  });

  it('is the source of its change of the balance', async () => {
    const { partner, id } = opened.get('the exact amount') ?? assert.fail();
    const { json } = await partner.call('GET', '/balance/transactions', { mode: 'live' });
    const [{ type, amount, balance_after, source, mode }, ...more] = json.data;
    assert.deepEqual(
      { type, amount, balance_after, source, mode },
      { type: 'deposit', amount: CENTS, balance_after: CENTS, source: { type: 'deposit', id }, mode: 'live' },
    );
    assert.deepEqual(more, []);
  });

  it('is confirming before its block is solid, and awaiting payment again if the block did not last', async () => {
    const partner = await deposits.stack.createPartner();
    const { id, address } = await openAddress(partner, CENTS);
    deposits.chain.mine([pays(address)]);
    await untilDeposit(partner, id, 'confirming');
    deposits.chain.fork(1);
    deposits.chain.solidify();
    await untilDeposit(partner, id, 'awaiting_payment');
    deposits.chain.mine([pays(address)]);
    deposits.chain.solidify();
    await untilDeposit(partner, id, 'confirmed');
  });
});

describe('a deposit that expires', function () {
  this.timeout(180_000);
  let deposits: DepositStack;
  let partner: TestPartner;
  before(async () => {
    deposits = await startDepositStack();
    partner = await deposits.stack.createPartner();
  });
  after(async () => {
    await assertLedgerClean(deposits.stack);
    await deposits.stop();
  });

  it("expires by the chain's time, counts a payment by its block's time, and still finds a late one", async () => {
    const { chain, stack } = deposits;
    const [paid, late, never] = [
      await openAddress(partner, CENTS),
      await openAddress(partner, CENTS),
      await openAddress(partner, CENTS),
    ];
    await untilScanned(deposits, chain.solidNumber());
    await stack.stopWorker();
    const expiresAt = Date.now() + stack.config.depositAddressTtlMs;
    chain.mine([pays(paid.address)], { time: new Date(expiresAt - 60_000) });
    chain.mine([pays(late.address)], { time: new Date(expiresAt + 1_000) });
    const { number } = chain.solidify();
    await stack.startWorker();
    await untilScanned(deposits, number);
    await untilDeposit(partner, paid.id, 'confirmed');
    assert.deepEqual((await readLeft(deposits, partner, late.id)).payments, ['late']);
    await untilDeposit(partner, never.id, 'expired');

    chain.mine([pays(never.address), pays(paid.address)]);
    chain.solidify();
    await untilDeposit(partner, never.id, 'needs_review');
    await untilDeposit(partner, paid.id, 'needs_review');
    assert.deepEqual(await readLeft(deposits, partner, never.id), {
      ...{ status: 'needs_review', receivedCents: CENTS, payments: ['late'], confirmedEvents: 0 },
      balanceCents: CENTS,
    });
    assert.deepEqual((await readLeft(deposits, partner, paid.id)).payments, ['credited', 'late']);
  });
});
