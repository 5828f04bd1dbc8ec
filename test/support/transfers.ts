import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import type { Mode } from '../../domain/mode.ts';
import type { TransferDirection } from '../../domain/transfer.ts';
import { createCard } from './cards.ts';
import type { Answer, CallOptions, TestPartner, TestStack } from './stack.ts';
import { until } from './until.ts';

/** What the card of {@link cardholder} has on it, and what it cost with its fees. */
export const CARD_CENTS = 1_000;
const CARD_PRICE = 1_150;

export interface Cardholder {
  partner: TestPartner;
  mode: Mode;
  cardId: string;
}

/** An account that has an active card with {@link CARD_CENTS}, and this much left, in one mode. */
export async function cardholder(stack: TestStack, mode: Mode, leftCents: number): Promise<Cardholder> {
  const partner = await stack.createPartner();
  const fund = (amountCents: number) =>
    adjustBalance(stack.operator, { partnerId: partner.id, mode, amountCents, reason: 'a test', key: null });
  await fund(CARD_PRICE);
  const { status, json, text } = await createCard(partner, { amount: CARD_CENTS }, { mode });
  assert.equal(status, 201, text);
  if (leftCents > 0) await fund(leftCents);
  return { partner, mode, cardId: json.id };
}

/** POST /cards/{cardId}/topups or withdrawals, with a new key unless one is given. */
export function transfer(
  direction: TransferDirection,
  { partner, mode, cardId }: Cardholder,
  amount: unknown,
  options: Omit<CallOptions, 'mode'> = {},
): Promise<Answer> {
  return partner.call('POST', `/cards/${cardId}/${direction}s`, {
    mode,
    idempotencyKey: randomUUID(),
    body: { amount },
    ...options,
  });
}

/** A top-up once it is no longer pending, as GET /topups/{topupId} gives it. */
// biome-ignore lint/suspicious/noExplicitAny: a top-up as the API gives it.
export function settledTopUp({ partner, mode }: Cardholder, topUpId: string): Promise<any> {
  return until(`${topUpId} is not pending`, async () => {
    const { json, status, text } = await partner.call('GET', `/topups/${topUpId}`, { mode });
    assert.equal(status, 200, text);
    return json.status !== 'pending' && json;
  });
}
