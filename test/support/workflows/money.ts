import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { adjustBalance } from '../../../commands/accounts/balance.ts';
import { DEFAULT_FEE_PLAN, type FundingKind, quoteFunding } from '../../../domain/fees.ts';
import type { Mode } from '../../../domain/mode.ts';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { readBalance } from '../../../ledger/read-balance.ts';
import type { TestPartner, TestStack } from '../stack.ts';

/** What a funded partner starts with in each mode, in cents. */
export const FUNDS_CENTS = 1_000_000;

/** A partner with {@link FUNDS_CENTS} in both modes. */
export async function fundedPartner(stack: TestStack): Promise<TestPartner> {
  const partner = await stack.createPartner();
  for (const mode of ['test', 'live'] as const) {
    await adjustBalance(stack.operator, {
      partnerId: partner.id,
      mode,
      amountCents: FUNDS_CENTS,
      reason: 'funds of a test',
      key: randomUUID(),
    });
  }
  return partner;
}

/** What a card, or a top-up, of this amount takes from the balance: amount and fees, in cents. */
export const priceOf = (amountCents: number, kind: FundingKind = 'card_issue'): number =>
  quoteFunding(DEFAULT_FEE_PLAN, kind, amountCents).totalDebitedCents;

/** Holds the prepaid balance to exactly this. */
export async function assertBalance(
  stack: TestStack,
  partner: TestPartner,
  mode: Mode,
  expected: { spentCents: number; heldCents: number },
): Promise<void> {
  const { spentCents, heldCents } = expected;
  assert.deepEqual(await readBalance(stack.orm.em.fork(), partner.id, mode), {
    availableCents: FUNDS_CENTS - spentCents - heldCents,
    heldCents,
    totalCents: FUNDS_CENTS - spentCents,
  });
}

/** Every invariant of the ledger holds. */
export async function assertLedgerClean(stack: TestStack): Promise<void> {
  assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
}
