import assert from 'node:assert/strict';
import { fingerprintRequest } from '../../../api/http/keyed.ts';
import { claimIdempotencyKey } from '../../../commands/idempotency/claim.ts';
import { readClaimResponse, sealRequest } from '../../../commands/idempotency/response.ts';
import { newId } from '../../../crypto/new-id.ts';
import { expectError } from '../../support/api/answers.ts';
import { fundedPartner } from '../../support/money.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

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
  /** What is left if the API dies once the worker has found that the request can't be carried out. */
  async function leaveInvalid({ id: partnerId }: TestPartner): Promise<void> {
    const claimId = newId('claim');
    const { ring } = stack.operator;
    const body = { ...CARD, amount: Number.MAX_SAFE_INTEGER };
    await claimIdempotencyKey(
      { orm: stack.orm, ring },
      {
        ...{ claimId, partnerId, mode: 'live', key: 'k', operation: 'create_card', cardId: null, leaseMs: 0 },
        resourceId: newId('card'),
        fingerprint: fingerprintRequest('post', '/v1/cards', body),
        sealedRequest: sealRequest(ring, claimId, body),
        requestId: newId('req'),
        apiKeyId: null,
        clientAddress: null,
      },
    );
    const response = await until('it has a response', () =>
      readClaimResponse({ orm: stack.orm, ring }, claimId),
    );
    assert.equal(response.status, 400, response.body);
  }
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
  for (const [name, body] of [
    ['the same body', { ...CARD, amount: Number.MAX_SAFE_INTEGER }],
    ['another body', CARD],
  ] as const) {
    it(`can be used again with ${name} after a 400 whose process died before it freed the key`, async () => {
      await leaveInvalid(partner);
      const answer = await create(body, 'live');
      assert.equal(answer.status, body === CARD ? 201 : 400, answer.text);
      assert.equal(answer.headers.get('idempotent-replayed'), null);
    });
  }
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
