import assert from 'node:assert/strict';
import { type Draft, tokenTransfer } from '../../dev/tron/drafts.ts';
import { type Left, openAddress, readDeposit, readLeft } from '../support/deposits/deposit-stack.ts';
import {
  type ScannedChain,
  startAddressStack,
  startScannedChain,
} from '../support/deposits/scanned-chain.ts';
import { assertLedgerClean } from '../support/money.ts';
import type { TestPartner } from '../support/stack.ts';

const CENTS = 2_500;
const EXACT = 25_000_000n;

/** How payments are judged is in credit-payments.test.ts; this is what the chain can have. */
interface Case {
  /** What the blocks have that come, one after the other. */
  blocks(address: string): Draft[][];
  left: Omit<Left, 'balanceCents' | 'confirmedEvents'>;
}

const pays = (to: string, valueMicroUsdt = EXACT): Draft => tokenTransfer({ to, valueMicroUsdt });
const confirmed = (receivedCents = CENTS) => ({ status: 'confirmed', receivedCents, payments: ['credited'] });

const CASES: Record<string, Case> = {
  'the exact amount': { blocks: (to) => [[pays(to)]], left: confirmed() },
};

describe('a deposit', () => {
  let scanned: ScannedChain;
  const opened = new Map<string, { partner: TestPartner; id: string; address: string }>();
  before(async () => {
    const stack = await startAddressStack();
    scanned = await startScannedChain(stack);
    for (const name of [...Object.keys(CASES), 'one of two', 'two of two']) {
      const partner = await stack.createPartner(name);
      opened.set(name, { partner, ...(await openAddress(partner, CENTS)) });
    }
    const contents = Object.entries(CASES).map(([name, { blocks }]) => blocks(addressFor(name)));
    const both = tokenTransfer(
      ['one of two', 'two of two'].map((name) => ({ to: addressFor(name), valueMicroUsdt: EXACT })),
    );
    scanned.chain.mine(contents.flatMap(([first = []]) => first));
    scanned.chain.mine([...contents.flatMap(([, second = []]) => second), both]);
    scanned.chain.solidify();
    await scanned.look();
  });
  after(async () => {
    await assertLedgerClean(scanned.stack);
    await scanned.stop();
    await scanned.stack.stop();
  });

  const addressFor = (name: string): string => opened.get(name)?.address ?? '';

  async function assertLeft(name: string, left: Case['left']): Promise<void> {
    const { partner, id } = opened.get(name) ?? assert.fail(name);
    const isCredited = left.payments.includes('credited');
    assert.deepEqual(await readLeft(scanned, partner, id), {
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
    const { chain, stack, look } = scanned;
    const partner = await stack.createPartner();
    const { id, address } = await openAddress(partner, CENTS);
    const status = async () => {
      await look();
      return (await readLeft(scanned, partner, id)).status;
    };
    chain.mine([pays(address)]);
    assert.equal(await status(), 'confirming');
    chain.fork(1);
    chain.solidify();
    assert.equal(await status(), 'awaiting_payment');
    chain.mine([pays(address)]);
    chain.solidify();
    assert.equal(await status(), 'confirmed');
  });

  it("expires by the chain's time, counts a payment by its block's time, and still finds a late one", async () => {
    const { chain, stack, look } = scanned;
    const partner = await stack.createPartner();
    const paid = await openAddress(partner, CENTS);
    const late = await openAddress(partner, CENTS);
    const never = await openAddress(partner, CENTS);
    const left = ({ id }: { id: string }) => readLeft(scanned, partner, id);
    const expiresAt = await readExpiry(partner, paid.id);
    chain.mine([pays(paid.address)], { time: new Date(expiresAt - 60_000) });
    chain.mine([pays(late.address)], { time: new Date(expiresAt + 60_000) });
    chain.solidify();
    await look();
    assert.equal((await left(paid)).status, 'confirmed');
    assert.deepEqual((await left(late)).payments, ['late']);
    assert.equal((await left(never)).status, 'expired');

    chain.mine([pays(never.address), pays(paid.address)]);
    chain.solidify();
    await look();
    assert.deepEqual(await left(never), {
      ...{ status: 'needs_review', receivedCents: CENTS, payments: ['late'], confirmedEvents: 0 },
      balanceCents: CENTS,
    });
    assert.equal((await left(paid)).status, 'needs_review');
    assert.deepEqual((await left(paid)).payments, ['credited', 'late']);
  });
});

async function readExpiry(partner: TestPartner, id: string): Promise<number> {
  return Date.parse((await readDeposit(partner, id)).expires_at);
}
