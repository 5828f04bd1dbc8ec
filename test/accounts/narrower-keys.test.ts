import assert from 'node:assert/strict';
import { createApiKey } from '../../accounts/api-keys.ts';
import { Scope } from '../../accounts/scope-rules.ts';
import { expectError } from '../support/api/answers.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

const SOON = '2098-01-01T00:00:00.000Z';
const LATER = '2099-01-01T00:00:00.000Z';
const HERE = ['127.0.0.0/8', '::1'];

/** What a key that is bound to {@link HERE} until {@link SOON} asks for, and what else the new key has or which error it gets. */
const ASKED: [object, { ip_allowlist?: string[]; expires_at?: string } | RegExp][] = [
  [{}, {}],
  [{ ip_allowlist: ['127.0.0.1'] }, { ip_allowlist: ['127.0.0.1'] }],
  [{ ip_allowlist: ['127.1.0.0/16', '::1/128'] }, { ip_allowlist: ['127.1.0.0/16', '::1'] }],
  [{ ip_allowlist: ['::ffff:127.0.0.0/120'] }, { ip_allowlist: ['127.0.0.0/24'] }],
  [{ expires_at: '2090-01-01T00:00:00Z' }, { expires_at: '2090-01-01T00:00:00.000Z' }],
  [{ expires_at: SOON }, {}],
  [{ ip_allowlist: null }, /ip_not_allowed .*: 0\.0\.0\.0\/0, ::\/0\./],
  [{ ip_allowlist: ['127.0.0.0/7'] }, /ip_not_allowed .*: 126\.0\.0\.0\/7\./],
  [{ ip_allowlist: ['127.0.0.1', '10.0.0.1', '::2'] }, /ip_not_allowed .*: 10\.0\.0\.1, ::2\./],
  [{ expires_at: null }, /validation_failed expires_at .*2098-01-01T00:00:00\.000Z/],
  [{ expires_at: LATER }, /validation_failed expires_at .*2098-01-01T00:00:00\.000Z/],
];

describe('a key that an API key makes', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let bound: { id: string; key: string };
  before(async () => {
    stack = await sharedStack('api');
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
    bound = await made({ ipAllowlist: HERE, expiresAt: new Date(SOON) });
  });

  const made = (limits: { ipAllowlist?: string[]; expiresAt?: Date } = {}) =>
    createApiKey(stack.operator, {
      ...{ partnerId: partner.id, mode: 'test', name: 'a', scopes: Scope.options, ...limits },
    });
  const as = (key: string) => stack.partnerHere({ ...partner, keys: { ...partner.keys, test: key } });
  const ask = (path: string, body: object, key = bound.key) => as(key).call('POST', path, { body });
  const activeKeys = async () => {
    const { json } = await as(bound.key).call('GET', '/api-keys');
    return json.data.filter(({ status }: { status: string }) => status === 'active').length;
  };

  for (const [body, expected] of ASKED) {
    it(`is never wider than that: ${JSON.stringify(body)}`, async () => {
      const before = await activeKeys();
      const answer = await ask('/api-keys', { name: 'b', ...body });
      if (expected instanceof RegExp) {
        const { code, param = '', message } = answer.json.error;
        assert.match(`${code} ${param} ${message}`, expected);
        assert.equal(await activeKeys(), before);
        return;
      }
      assert.equal(answer.status, 201, answer.text);
      const { ip_allowlist, expires_at } = answer.json;
      assert.deepEqual({ ip_allowlist, expires_at }, { ip_allowlist: HERE, expires_at: SOON, ...expected });
    });
  }

  it('keeps, at a rotation, the allowlist and the expiry', async () => {
    const { status, json } = await ask(`/api-keys/${bound.id}/rotate`, {});
    assert.equal(status, 201);
    assert.deepEqual([json.ip_allowlist, json.expires_at], [HERE, SOON]);
  });

  it('is not, by a rotation, the like of one that may do more', async () => {
    const elsewhere = await made({ expiresAt: new Date(SOON) });
    const forever = await made({ ipAllowlist: HERE });
    expectError(await ask(`/api-keys/${elsewhere.id}/rotate`, {}), 'ip_not_allowed');
    const refused = await ask(`/api-keys/${forever.id}/rotate`, { overlap_seconds: 0 });
    expectError(refused, 'validation_failed', ['expires_at']);
    // Nor has the refused rotation touched the old key.
    assert.equal((await as(forever.key).call('GET', '/ping')).status, 200);
    const shorter = await ask(`/api-keys/${forever.id}/rotate`, { expires_at: SOON });
    assert.deepEqual([shorter.status, shorter.json.expires_at], [201, SOON]);
  });

  it('gets another expiry, or none, at a rotation by a key without one', async () => {
    const root = await made();
    for (const expires_at of [LATER, null]) {
      const old = await made({ expiresAt: new Date(SOON) });
      const { status, json } = await ask(`/api-keys/${old.id}/rotate`, { expires_at }, root.key);
      assert.deepEqual([status, json.expires_at], [201, expires_at]);
    }
  });
});
