import assert from 'node:assert/strict';
import { type Draft, tokenTransfer } from '../../dev/tron/drafts.ts';
import { openAddress, readDeposit, readLeft } from '../support/deposits/deposit-stack.ts';
import {
  type ScannedChain,
  startAddressStack,
  startScannedChain,
} from '../support/deposits/scanned-chain.ts';
import { assertLedgerClean } from '../support/money.ts';
import type { TestPartner } from '../support/stack.ts';

const CENTS = 2_500;
const EXACT = 25_000_000n;

const pays = (to: string): Draft => tokenTransfer({ to, valueMicroUsdt: EXACT });

/** How payments are judged is in credit-payments.test.ts; this is what the chain can have. */
describe('a deposit', () => {
  let scanned: ScannedChain;
  before(async () => {
    scanned = await startScannedChain(await startAddressStack());
  });
  after(async () => {
    await assertLedgerClean(scanned.stack);
    await scanned.stop();
    await scanned.stack.stop();
  });

  it('is confirmed if one transaction pays it and another one, and is the source of the money', async () => {
    const { chain, stack, look } = scanned;
    const partners = [await stack.createPartner(), await stack.createPartner()];
    const opened: { partner: TestPartner; id: string; address: string }[] = [];
    for (const partner of partners) opened.push({ partner, ...(await openAddress(partner, CENTS)) });
    chain.mine([tokenTransfer(opened.map(({ address: to }) => ({ to, valueMicroUsdt: EXACT })))]);
    chain.solidify();
    await look();
    for (const { partner, id } of opened) {
      assert.deepEqual(await readLeft(scanned, partner, id), {
        status: 'confirmed',
        receivedCents: CENTS,
        payments: ['credited'],
        confirmedEvents: 1,
        balanceCents: CENTS,
      });
      const { json } = await partner.call('GET', '/balance/transactions', { mode: 'live' });
      const [{ type, amount, balance_after, source }, ...more] = json.data;
      assert.deepEqual(
        [type, amount, balance_after, source, more],
        ['deposit', CENTS, CENTS, { type: 'deposit', id }, []],
      );
    }
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
    const expiresAt = Date.parse((await readDeposit(partner, paid.id)).expires_at);
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
