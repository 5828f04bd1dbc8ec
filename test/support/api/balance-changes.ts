import assert from 'node:assert/strict';
import type { BalanceTransactionResource } from '../../../accounts/resource.ts';
import type { Mode } from '../../../domain/mode.ts';
import { balanceOf } from '../money.ts';
import type { TestPartner } from '../stack.ts';

/** Asserts of all that ever changed a balance, newest first: the amounts chain to the total and add up to it. */
export async function assertAddsUp(
  partner: TestPartner,
  items: readonly BalanceTransactionResource[],
  mode: Mode,
): Promise<void> {
  let [, , expected = Number.NaN] = await balanceOf(partner, mode);
  for (const { amount, balance_after, mode: of } of items) {
    assert.deepEqual([balance_after, of], [expected, mode]);
    expected -= amount;
  }
  assert.equal(expected, 0);
  assert.equal(new Set(items.map(({ id }) => id)).size, items.length);
}
