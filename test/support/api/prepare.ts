import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { adjustBalance } from '../../../commands/accounts/balance.ts';
import type { Mode } from '../../../domain/mode.ts';
import type { Answer, CallOptions, TestPartner, TestStack } from '../stack.ts';

/** An account with this much in both modes. */
export async function fundedPartner(stack: TestStack, amountCents: number): Promise<TestPartner> {
  const partner = await stack.createPartner();
  for (const mode of ['test', 'live'] as const) {
    await adjustBalance(stack.operator, {
      partnerId: partner.id,
      mode,
      amountCents,
      reason: 'a test',
      key: null,
    });
  }
  return partner;
}

/** POST /cards with a key and an external_ref of its own unless given. */
export function createCard(
  partner: TestPartner,
  body: { amount: unknown; external_ref?: string; [field: string]: unknown },
  options: Omit<CallOptions, 'body'> = {},
): Promise<Answer> {
  return partner.call('POST', '/cards', {
    idempotencyKey: randomUUID(),
    ...options,
    body: { external_ref: randomUUID(), ...body },
  });
}

/** @returns available, held and total */
export async function balanceOf(partner: TestPartner, mode: Mode = 'test'): Promise<number[]> {
  const { status, json, text } = await partner.call('GET', '/balance', { mode });
  assert.equal(status, 200, text);
  return [json.available, json.held, json.total];
}

/** A live card once it is no longer pending, as GET /cards/{cardId} gives it. */
// biome-ignore lint/suspicious/noExplicitAny: a card as the API gives it.
export async function settledCard(partner: TestPartner, cardId: string): Promise<any> {
  for (;;) {
    const { json } = await partner.call('GET', `/cards/${cardId}`, { mode: 'live' });
    if (json.status !== 'funding_pending') return json;
    await sleep(50);
  }
}
