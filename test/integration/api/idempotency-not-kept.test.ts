import assert from 'node:assert/strict';
import { expectError } from '../../support/api/answers.ts';
import { fundedPartner } from '../../support/money.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../../support/stack.ts';

const CARD = { amount: 1_000, external_ref: 'r', email: 'a@example.com' };

describe('an Idempotency-Key', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, 10_000);
  });

  const create = (body: unknown, mode: 'test' | 'live' = 'test') =>
    partner.call('POST', '/cards', { body, idempotencyKey: 'k', mode });
  const notKept = async (refused: Answer, code: Parameters<typeof expectError>[1], paths: string[] = []) => {
    expectError(refused, code, paths);
    const answer = await create(CARD);
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.get('idempotent-replayed'), null);
  };
  const post = (path: string, options: object) =>
    partner.call('POST', path, { body: CARD, idempotencyKey: 'k', ...options });

  it('can be used again after a 400 for the body', async () =>
    notKept(await create({ amount: 0 }), 'validation_failed', ['amount', 'external_ref']));
  it('can be used again after a 400 for the query', async () =>
    notKept(await post('/cards?x=1', {}), 'validation_failed', ['x']));
  it('can be used again after a 400 that depends on the fees', async () => {
    const amount = Number.MAX_SAFE_INTEGER;
    await notKept(await create({ ...CARD, amount }), 'validation_failed', ['amount']);
  });
  it('can be used again after a 401', async () =>
    notKept(await post('/cards', { headers: { authorization: 'Bearer x' } }), 'invalid_api_key'));
  it('can be used again after a 403', async () => {
    const refused = await post('/test/credit', { mode: 'live' });
    expectError(refused, 'live_key_not_allowed');
    assert.equal((await create(CARD, 'live')).status, 201);
  });
  it('can be used again after a 404 for the route', async () =>
    notKept(await post('/card', {}), 'not_found'));
  it('can be used again after a 405', async () =>
    notKept(await partner.call('PUT', '/cards', { idempotencyKey: 'k' }), 'method_not_allowed'));
  it('can be used again after a 413', async () =>
    notKept(await post('/cards', { body: ' '.repeat(70_000) }), 'body_too_large'));
  it('can be used again after a 415', async () =>
    notKept(await post('/cards', { headers: { 'content-type': 'text/plain' } }), 'unsupported_media_type'));
});
