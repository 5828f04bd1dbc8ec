import assert from 'node:assert/strict';
import { revokeApiKey } from '../../accounts/api-keys.ts';
import type { Admission } from '../../api/http/admission.ts';
import { createAuthenticate } from '../../api/http/authenticate.ts';
import { apiKeyHasher, generateApiKey } from '../../platform/crypto/api-key.ts';
import type { KeyRing } from '../../platform/crypto/key-ring.ts';
import { expectError } from '../support/api/answers.ts';
import { withNewKey } from '../support/api/keys.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('authentication', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack('api');
    partner = await stack.createPartner();
  });

  const ping = (authorization: string) => partner.call('GET', '/ping', { headers: { authorization } });
  const mistyped = (key: string) => key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');

  it("names the account and the key's mode at GET /ping, and HEAD has the same headers without a body", async () => {
    const { id, keys, call } = await stack.createPartner('Größe & Co.');
    for (const mode of ['test', 'live'] as const) {
      const { status, json } = await call('GET', '/ping', { mode });
      assert.equal(status, 200);
      assert.deepEqual(json, { ok: true, partner_id: id, partner_name: 'Größe & Co.', mode });
    }
    const url = `http://${stack.config.host}:${stack.config.port}/v1/ping`;
    const head = await fetch(url, { method: 'HEAD', headers: { authorization: `Bearer ${keys.test}` } });
    assert.deepEqual([head.status, await head.text()], [200, '']);
    const get = await call('GET', '/ping');
    assert.equal(head.headers.get('content-length'), get.headers.get('content-length'));
  });

  it('accepts Bearer in any case', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  ']) {
      assert.equal((await ping(`${scheme} ${partner.keys.test}`)).status, 200, scheme);
    }
  });

  const REFUSED: [what: string, message: RegExp, authorization: (key: string) => string][] = [
    ['an empty header', /^The Authorization header is missing\. Send/, () => ''],
    ['another scheme', /does not begin with Bearer/, (key) => `Basic ${btoa(`${key}:`)}`],
    ['two keys', /exactly one key after Bearer/, (key) => `Bearer ${key}, Bearer ${partner.keys.live}`],
    [
      'an unknown key',
      /^The API key is unknown, revoked or expired\./,
      () => `Bearer ${generateApiKey('test')}`,
    ],
    ['a wrong checksum', /its checksum does not match/, (key) => `Bearer ${mistyped(key)}`],
    [
      "the other mode's prefix",
      /its checksum does not match/,
      (key) => `Bearer ${key.replace('test', 'live')}`,
    ],
    ['a shorter key', /and 42 letters/, (key) => `Bearer ${key.slice(0, -1)}`],
    ['a very long key', /and 42 letters/, () => `Bearer ${'sk_test_'.repeat(500)}`],
    ['bytes that are not ASCII', /and 42 letters/, () => 'Bearer sk_test_\xff\xfe'],
  ];
  for (const [what, message, authorization] of REFUSED) {
    it(`answers 401 for ${what}, and says what is wrong without repeating the key`, async () => {
      const sent = authorization(partner.keys.test);
      const answer = await ping(sent);
      expectError(answer, 'invalid_api_key');
      assert.match(answer.json.error.message, message);
      assert.ok(!answer.text.includes(sent.slice('Bearer '.length) || 'no key'));
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
    });
  }

  it('stores a keyed hash of an API key, and neither the key nor a plain digest', async () => {
    const key = partner.keys.live;
    const found = await asOwner<{ hits: number; hint: string }>(
      stack,
      `SELECT (SELECT count(*)::int FROM api_key k WHERE row_to_json(k)::text LIKE '%' || $1 || '%'
           OR k.hash IN (sha256($2::bytea), sha512($2::bytea))) AS hits,
         (SELECT hint FROM api_key WHERE partner_id = $3 AND mode = 'live') AS hint`,
      [key.slice(8), Buffer.from(key), partner.id],
    );
    assert.deepEqual(found, [{ hits: 0, hint: `sk_live_…${key.slice(-4)}` }]);
  });

  it("refuses a revoked key within two seconds in every process, and still accepts the account's other keys", async () => {
    const other = await withNewKey(stack, partner);
    const authorization = `Bearer ${other.keys.test}`;
    let nowMs = 0;
    const authenticate = authenticateWith(stack.operator.ring, () => nowMs);
    assert.equal((await authenticate(authorization)).keyId, other.keyId);
    await revokeApiKey(stack.operator, other.keyId);
    nowMs = 1_999;
    assert.equal((await authenticate(authorization)).keyId, other.keyId);
    nowMs = 2_000;
    await assert.rejects(authenticate(authorization), { code: 'invalid_api_key' });
    const revoked = await other.call('GET', '/ping');
    expectError(revoked, 'invalid_api_key');
    const unknown = await ping(`Bearer ${generateApiKey('test')}`);
    assert.equal(revoked.json.error.message, unknown.json.error.message);
    assert.equal((await partner.call('GET', '/ping')).status, 200);
  });

  /** As a process does that has seen no key yet. */
  const authenticateWith = (ring: KeyRing, now?: () => number) =>
    createAuthenticate(stack.orm, async (key) => apiKeyHasher(ring)(key), NO_QUEUE, now);
});

const NO_QUEUE: Admission = {
  arrive: () => ({ begin: async () => true, passTurn() {}, leave() {}, end() {} }),
  exchange: async () => {},
  stop() {},
  metrics: [],
};
