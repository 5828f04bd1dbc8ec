import assert from 'node:assert/strict';
import ipaddr from 'ipaddr.js';
import { createApiKey, revokeApiKey } from '../../accounts/api-keys.ts';
import { suspendPartner } from '../../accounts/partners.ts';
import type { Scope } from '../../accounts/scope-rules.ts';
import type { ErrorCode } from '../../domain/error-catalogue.ts';
import type { Mode } from '../../domain/mode.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError } from '../support/api/answers.ts';
import { rawRequest } from '../support/api/raw-request.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';

const BURST = 20;
/** A trusted proxy passes on something that is no address, so the request comes from nowhere that is allowed. */
const NOWHERE = { 'x-forwarded-for': 'unknown' };

describe('behind a trusted proxy,', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    const trustedProxies = ['127.0.0.0/8', '10.0.0.0/8'].map((block) => ipaddr.parseCIDR(block));
    // A key gets its burst, and nothing more in a week.
    const limits = { rateLimitPerSecond: 1e-6, rateLimitBurst: BURST };
    stack = await startTestStack({ trustedProxies, ...limits }, { worker: false });
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
  });
  after(() => stack.stop());

  /** How it is read is in test/unit/api/client-address.test.ts. */
  describe("a client's address", () => {
    let key: string;
    beforeEach(async () => {
      const allowed = { ipAllowlist: ['203.0.113.0/24', '2001:db8::/32'] };
      ({ key } = await createApiKey(stack.operator, {
        partnerId: partner.id,
        mode: 'test',
        name: null,
        ...allowed,
      }));
    });

    const addressLogged = (requestId: string | null) => {
      const lines = stack.logLines.filter((line) => line.includes(String(requestId)));
      return JSON.parse(lines.find((line) => line.includes('"route"')) ?? '{}').clientAddress;
    };
    const from = (...forwarded: string[]) =>
      rawRequest(stack, 'GET', '/v1/ping', [
        ['Authorization', `Bearer ${key}`],
        ...forwarded.map((line) => ['X-Forwarded-For', line] as const),
      ]);

    it("is logged and compared with the key's allowlist, and a client cannot choose it", async () => {
      for (const [forwarded, address] of [
        [['1.1.1.1, 203.0.113.9, 10.4.5.6'], '203.0.113.9'],
        [['::ffff:203.0.113.9'], '203.0.113.9'],
        [['1.1.1.1, 2001:DB8::5, 10.4.5.6'], '2001:db8::5'],
        [['198.51.100.7', '203.0.113.9', '10.4.5.6'], '203.0.113.9'],
      ] as const) {
        const { status, headers } = await from(...forwarded);
        assert.deepEqual([status, addressLogged(headers.get('request-id'))], [200, address]);
      }
      // What the client wrote itself is further left than what the proxy appended.
      for (const forwarded of [
        ['203.0.113.9, 198.51.100.7'],
        ['203.0.113.9, 198.51.100.7, 10.4.5.6'],
        ['203.0.113.9', '198.51.100.7'],
        ['10.4.5.6'],
        [''],
      ])
        expectError(await from(...forwarded), 'ip_not_allowed');
      assert.match((await from('203.0.113.9, 198.51.100.7')).text, /198\.51\.100\.7/);
    });

    it('is refused, after the key, if it cannot be parsed', async () => {
      const unreadable = { 'x-forwarded-for': '203.0.113.9, unknown' };
      const refused = await partner.call('GET', '/balance', { headers: unreadable });
      expectError(refused, 'ip_not_allowed');
      assert.equal(addressLogged(refused.headers.get('request-id')), null);
      const headers = { ...unreadable, authorization: 'Bearer none' };
      expectError(await partner.call('GET', '/balance', { headers }), 'invalid_api_key');
    });
  });

  describe('of several reasons to refuse a request', () => {
    const newKey = (mode: Mode = 'test', scopes?: Scope[]) =>
      createApiKey(stack.operator, { partnerId: partner.id, mode, name: null, ...(scopes && { scopes }) });
    const refuse = async (
      request: [method: string, path: string, body?: string],
      key: string,
      code: ErrorCode,
      headers: Record<string, string> = {},
    ) => {
      const [method, path, body] = request;
      const authorized = { authorization: `Bearer ${key}`, ...headers };
      expectError(await partner.call(method, path, { headers: authorized, body }), code);
    };
    const useUp = async (key: string) => {
      const headers = { authorization: `Bearer ${key}` };
      for (let sent = 0; sent < BURST; sent++)
        assert.equal((await partner.call('GET', '/ping', { headers })).status, 200);
    };

    it("the key comes before its account's suspension", async () => {
      const { id, key } = await newKey();
      await revokeApiKey(stack.operator, id);
      await suspendPartner(stack.operator, partner.id, 'test');
      await refuse(['GET', '/ping'], key, 'invalid_api_key');
    });

    it("the account's suspension comes before the address", async () => {
      const { key } = await newKey();
      await suspendPartner(stack.operator, partner.id, 'test');
      await refuse(['GET', '/ping'], key, 'account_suspended', NOWHERE);
    });

    it('the address comes before the rate, which it does not count for', async () => {
      const { key } = await newKey();
      await refuse(['GET', '/ping'], key, 'ip_not_allowed', NOWHERE);
      await useUp(key);
      await refuse(['GET', '/ping'], key, 'rate_limited');
      await refuse(['GET', '/ping'], key, 'ip_not_allowed', NOWHERE);
    });

    it('the rate comes before a path or a method that does not exist', async () => {
      const { key } = await newKey();
      await refuse(['GET', '/nothing'], key, 'not_found');
      await refuse(['PUT', '/cards'], key, 'method_not_allowed');
      await useUp((await newKey()).key);
      for (let sent = 2; sent < BURST; sent++) await refuse(['GET', '/nothing'], key, 'not_found');
      await refuse(['GET', '/nothing'], key, 'rate_limited');
      await refuse(['PUT', '/cards'], key, 'rate_limited');
    });

    it('the same goes for HEAD and OPTIONS', async () => {
      const { key } = await newKey();
      const { host, port } = stack.config;
      const statusOf = async (method: string, path: string, authorization: string, headers = {}) => {
        const url = `http://${host}:${port}/v1${path}`;
        return (await fetch(url, { method, headers: { authorization, ...headers } })).status;
      };
      const authorized = `Bearer ${key}`;
      for (const [method, path, status] of [
        ['HEAD', '/nothing', 404],
        ['OPTIONS', '/nothing', 404],
        ['HEAD', '/quotes', 405],
        ['OPTIONS', '/cards', 405],
        ['HEAD', '/cards?x=1', 400],
        ['HEAD', '/cards', 200],
      ] as const) {
        assert.equal(await statusOf(method, path, 'Bearer none'), 401, `${method} ${path}`);
        assert.equal(await statusOf(method, path, authorized, NOWHERE), 403, `${method} ${path}`);
        assert.equal(await statusOf(method, path, authorized), status, `${method} ${path}`);
      }
      for (let sent = 6; sent < BURST; sent++) assert.equal(await statusOf('HEAD', '/ping', authorized), 200);
      assert.equal(await statusOf('HEAD', '/nothing', authorized), 429);
      assert.equal(await statusOf('OPTIONS', '/cards', authorized), 429);
    });

    it('the key and the path come before a body that is too large', async () => {
      const { key } = await newKey('test', ['cards:read']);
      const body = ' '.repeat(70_000);
      await refuse(['POST', '/nothing', body], 'none', 'invalid_api_key');
      await refuse(['POST', '/nothing', body], key, 'not_found');
      await refuse(['PUT', '/cards', body], key, 'method_not_allowed');
      await refuse(['POST', '/cards', body], key, 'insufficient_scope');
      await refuse(['POST', '/quotes', body], key, 'body_too_large');
    });

    it('the path and the method come before the mode', async () => {
      const { key } = await newKey('live');
      await refuse(['POST', '/test/nothing', '{}'], key, 'not_found');
      await refuse(['GET', '/test/credit'], key, 'method_not_allowed');
      await refuse(['POST', '/test/credit', '{}'], key, 'live_key_not_allowed');
    });

    it('the mode comes before the scope', async () => {
      const live = await newKey('live', ['cards:read']);
      await refuse(['POST', '/test/credit', '{}'], live.key, 'live_key_not_allowed');
      const test = await newKey('test', ['cards:read']);
      await refuse(['POST', '/funding/deposit-address', '{}'], test.key, 'test_key_not_allowed');
      await refuse(['POST', '/test/credit', '{}'], test.key, 'insufficient_scope');
    });

    it('the scope comes before the query, the headers and the body', async () => {
      const { key } = await newKey('test', ['cards:read']);
      await refuse(['POST', '/cards?x=1', '{'], key, 'insufficient_scope', { 'idempotency-key': '' });
    });

    it('the body comes before a resource that does not exist', async () => {
      const { key } = await newKey('test', ['cards:write']);
      const path = `/cards/${newId('card')}`;
      const headers = { authorization: `Bearer ${key}` };
      const asked = await partner.call('PATCH', path, { headers, body: { card_name: 1 } });
      expectError(asked, 'validation_failed', ['card_name']);
      expectError(await partner.call('PATCH', path, { headers, body: { card_name: 'x' } }), 'card_not_found');
    });
  });
});
