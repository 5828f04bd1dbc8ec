import assert from 'node:assert/strict';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import type { CardStatus } from '../../domain/card-status.ts';
import { DEFAULT_FEE_PLAN, type FundingKind, quoteFunding } from '../../domain/fees.ts';
import type { Mode } from '../../domain/mode.ts';
import { COUNTERS_INVARIANT, checkBooks } from '../../exports/check-books.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger, type Violation } from '../../ledger/check-ledger.ts';
import { readIdTime } from '../../platform/crypto/new-id.ts';
import { query, type Reader } from '../../platform/db/sql.ts';
import { asOwner } from './postgres.ts';
import type { TestPartner, TestStack } from './stack.ts';

export const FUNDS_CENTS = 1_000_000;

export async function fundedPartner(stack: TestStack, amountCents = FUNDS_CENTS): Promise<TestPartner> {
  const partner = await stack.createPartner();
  for (const mode of ['test', 'live'] as const) {
    const adjustment = { partnerId: partner.id, mode, amountCents, reason: 'funds of a test', key: null };
    await adjustBalance(stack.operator, adjustment);
  }
  return partner;
}

/** @returns available, held and total */
export async function balanceOf(partner: TestPartner, mode: Mode = 'test'): Promise<number[]> {
  const { status, json, text } = await partner.call('GET', '/balance', { mode });
  assert.equal(status, 200, text);
  return [json.available, json.held, json.total];
}

/** What a card or a top-up of this amount costs: amount and fees, in cents. */
export const priceOf = (amountCents: number, kind: FundingKind = 'card_issue'): number =>
  quoteFunding(DEFAULT_FEE_PLAN, kind, amountCents).totalDebitedCents;

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

/** Whose cards' rows no longer match the ledger, in the shared stacks of this process. */
const changedByHand = new Set<string>();

/** Sets the status of a partner's cards, or of one of them, which no request could lead to. */
export async function setCardStatus(
  stack: TestStack,
  partnerId: string,
  status: CardStatus,
  { cardId = '%', failureCode = null }: { cardId?: string; failureCode?: string | null } = {},
): Promise<void> {
  changedByHand.add(partnerId);
  await asOwner(
    stack,
    `UPDATE card SET status = $2, failure_code = $3, network_card_id = coalesce(network_card_id, id)
     WHERE partner_id = $1 AND id LIKE $4`,
    [partnerId, status, failureCode, cardId],
  );
}

/**
 * Asserts every invariant of the ledger, and that each posting has its row.
 * @param partner leaves out other partners' rows
 */
export async function assertLedgerClean(stack: TestStack, partner?: TestPartner): Promise<void> {
  const found = [...(await checkLedger(stack.orm.em.fork())), ...(await checkBooks(stack.orm.em.fork()))];
  // Others before it share the database, and change rows that are counted.
  const isOlder = ({ invariant, subject }: Violation) =>
    invariant === COUNTERS_INVARIANT && readIdTime(subject.split(' ')[0] ?? '') < stack.startedAt;
  const isAsked = ({ message }: Violation) =>
    partner === undefined
      ? ![...changedByHand].some((id) => message.includes(id))
      : message.includes(partner.id);
  assert.deepEqual(
    found.filter((one) => isAsked(one) && !isOlder(one)),
    [],
  );
}

export async function transferCodes(stack: TestStack, operationId: string): Promise<string[]> {
  const rows = await asOwner<{ code: string }>(
    stack,
    'SELECT code FROM ledger.transfer WHERE operation_id = $1',
    [operationId],
  );
  return rows.map(({ code }) => code);
}

export async function balanceOfCard(em: Reader, cardId: string): Promise<number> {
  const [row] = await query<{ posted: string }>(em, 'SELECT posted FROM ledger.account WHERE card_id = $1', [
    cardId,
  ]);
  return Number(row?.posted ?? 0);
}
