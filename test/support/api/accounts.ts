import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createApiKey } from '../../../accounts/api-keys.ts';
import { updatePartner } from '../../../accounts/partners.ts';
import { Scope } from '../../../accounts/scope-rules.ts';
import { FUNDS_CENTS, fundedPartner } from '../money.ts';
import { sharedStack } from '../shared-stack.ts';
import type { TestPartner, TestStack } from '../stack.ts';
import { rowsNaming } from '../stored-data.ts';
import { until } from '../until.ts';
import { MODES } from './declared-operations.ts';

/** An account with money whose keys have every scope, and which may read secure details. */
export async function unrestrictedPartner(stack: TestStack, amountCents = FUNDS_CENTS): Promise<TestPartner> {
  const partner = await fundedPartner(stack, amountCents);
  await updatePartner(stack.operator, partner.id, { secureDetailsEnabled: true });
  for (const mode of MODES) {
    const wanted = { partnerId: partner.id, mode, name: null, scopes: Scope.options };
    partner.keys[mode] = (await createApiKey(stack.operator, wanted)).key;
  }
  return partner;
}

/** Makes one of everything that a path can name in an account's test mode. @returns the ids by the names of parameters */
export async function makeOneOfEach(partner: TestPartner): Promise<Record<string, string>> {
  const post = async (path: string, body: object): Promise<string> => {
    const { status, json, text } = await partner.call('POST', path, { body, idempotencyKey: randomUUID() });
    assert.ok(status < 300, `${path}: ${text}`);
    return json.id;
  };
  const firstOf = async (path: string): Promise<string> => (await partner.call('GET', path)).json.data[0].id;
  const cardId = await post('/cards', { amount: 50_000, external_ref: randomUUID() });
  const endpointId = await post('/webhook-endpoints', { url: `https://hooks.example.com/${randomUUID()}` });
  return {
    cardId,
    endpointId,
    topupId: await post(`/cards/${cardId}/topups`, { amount: 1_000 }),
    withdrawalId: await post(`/cards/${cardId}/withdrawals`, { amount: 100 }),
    authorizationId: await post(`/test/cards/${cardId}/authorizations`, { amount: 100 }),
    transactionId: await post(`/test/cards/${cardId}/simulate-transaction`, {
      type: 'purchase',
      amount: 10,
    }),
    depositId: await post('/test/deposits', { amount: 1_000 }),
    keyId: await post('/api-keys', { name: 'one', scopes: ['cards:read'] }),
    sessionId: await post('/workbench-sessions', {}),
    replayId: await post(`/webhook-endpoints/${endpointId}/replay`, { created_gte: '2026-01-01T00:00:00Z' }),
    requestId: await loggedRequest(partner),
    eventId: await firstOf('/events'),
    operationId: await firstOf('/operations'),
  };
}

interface Untouched {
  stack: TestStack;
  partner: TestPartner;
}

/** For a `describe` of refused requests: an account whose rows must be the same after all of them. */
export function untouchedPartner(): Untouched {
  const running = {} as Untouched;
  let untouched: Record<string, string[]>;
  before(async () => {
    running.stack = await sharedStack('api');
    running.partner = await unrestrictedPartner(running.stack);
    untouched = await rowsNaming(running.stack, running.partner.id);
  });
  after(async () => {
    assert.deepEqual(await rowsNaming(running.stack, running.partner.id), untouched);
  });
  return running;
}

/** The newest request in an account's log, which is written beside the requests. */
export const loggedRequest = (partner: TestPartner): Promise<string> =>
  until('a request is in the log', async () => (await partner.call('GET', '/requests')).json.data[0]?.id);
