import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import type { TopUpRow } from '../../cards/transfers/top-up-resource.ts';
import type { Mode } from '../../domain/mode.ts';
import { of, TOPUP_COLUMNS } from '../../platform/db/columns.ts';
import { query } from '../../platform/db/sql.ts';
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

/** POST /cards/{cardId}/topups, with a new key unless one is given. */
export function topUp(
  { partner, mode, cardId }: Cardholder,
  amount: unknown,
  options: Omit<CallOptions, 'mode'> = {},
): Promise<Answer> {
  const body = { amount };
  return partner.call('POST', `/cards/${cardId}/topups`, {
    mode,
    idempotencyKey: randomUUID(),
    body,
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

export async function readCard({ partner, mode, cardId }: Cardholder) {
  return (await partner.call('GET', `/cards/${cardId}`, { mode })).json;
}

/** Asks for a top-up; the last two digits of the amount choose live mode's outcome. */
export function createTopUp(
  partner: TestPartner,
  mode: Mode,
  cardId: string,
  amountCents: number,
  key: string = randomUUID(),
): Promise<Answer> {
  const body = { amount: amountCents };
  return partner.call('POST', `/cards/${cardId}/topups`, { mode, body, idempotencyKey: key });
}

export async function readTopUpRow({ orm }: TestStack, topUpId: string): Promise<TopUpRow | undefined> {
  const [row] = await query<TopUpRow>(
    orm.em.fork(),
    `SELECT ${of('t', TOPUP_COLUMNS).join(', ')} FROM topup t WHERE t.id = $1`,
    [topUpId],
  );
  return row;
}
