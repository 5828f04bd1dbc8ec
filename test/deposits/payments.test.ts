import assert from 'node:assert/strict';
import { tokenTransfer } from '../../dev/tron/drafts.ts';
import { type DepositStack, openAddress, startDepositStack, untilDeposit } from './support/deposit-stack.ts';

describe('payments on the chain', function () {
  this.timeout(120_000);
  let deposits: DepositStack;
  before(async () => {
    deposits = await startDepositStack();
  });
  after(() => deposits.stop());

  it('of the exact amount are credited once they are solid', async () => {
    const partner = await deposits.stack.createPartner();
    const { id, address } = await openAddress(partner, 2_500);
    const block = deposits.chain.mine([tokenTransfer({ to: address, valueMicroUsdt: 25_000_000n })]);
    await untilDeposit(partner, id, 'confirming');
    deposits.chain.solidify();
    const deposit = await untilDeposit(partner, id, 'confirmed');
    assert.equal(deposit.payments[0].block, block.number);
  });
});
