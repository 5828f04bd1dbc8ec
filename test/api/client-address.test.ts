import assert from 'node:assert/strict';
import ipaddr from 'ipaddr.js';
import { createApiKey } from '../../accounts/api-keys.ts';
import { expectError } from '../support/api/answers.ts';
import { rawRequest } from '../support/api/raw-request.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';

describe("a client's address behind a trusted proxy", () => {
  let stack: TestStack;
  before(async () => {
    const trustedProxies = ['127.0.0.0/8', '10.0.0.0/8'].map((block) => ipaddr.parseCIDR(block));
    stack = await startTestStack({ trustedProxies }, { worker: false });
  });
  after(() => stack.stop());

  const lineOf = (requestId: string | null) =>
    JSON.parse(
      stack.logLines.find((line) => line.includes(String(requestId)) && line.includes('"route"')) ?? '{}',
    );

  it("is in the request's log line, together with the key's id", async () => {
    const partner = await stack.createPartner();
    const { status, headers } = await partner.call('GET', '/balance', {
      headers: { 'x-forwarded-for': '1.1.1.1, 203.0.113.9, 10.4.5.6' },
    });
    assert.equal(status, 200);
    const line = lineOf(headers.get('request-id'));
    assert.equal(line.clientAddress, '203.0.113.9');
    assert.match(line.keyId, /^key_/);
  });

  it("is compared with the key's allowlist, and a client cannot choose it", async () => {
    const partner = await stack.createPartner();
    const { key } = await createApiKey(stack.operator, {
      ...{ partnerId: partner.id, mode: 'test', name: null },
      ipAllowlist: ['203.0.113.0/24', '2001:db8::/32'],
    });
    const from = (forwarded: string) => {
      const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': forwarded };
      return partner.call('GET', '/ping', { headers });
    };
    for (const allowed of ['203.0.113.9', '::ffff:203.0.113.9', '1.1.1.1, 2001:DB8::5, 10.4.5.6'])
      assert.equal((await from(allowed)).status, 200, allowed);
    // What the client wrote itself is further left than what the proxy appended.
    for (const refused of [
      '203.0.113.9, 198.51.100.7',
      '203.0.113.9, 198.51.100.7, 10.4.5.6',
      '10.4.5.6',
      '',
    ])
      expectError(await from(refused), 'ip_not_allowed');
  });

  it('is the last that is not trusted of several X-Forwarded-For headers, in the order they were sent', async () => {
    const partner = await stack.createPartner();
    const { key } = await createApiKey(stack.operator, {
      ...{ partnerId: partner.id, mode: 'test', name: null },
      ipAllowlist: ['203.0.113.0/24'],
    });
    const from = (...lines: string[]) =>
      rawRequest(stack, 'GET', '/v1/ping', [
        ['Authorization', `Bearer ${key}`],
        ...lines.map((line) => ['X-Forwarded-For', line] as const),
      ]);
    assert.equal((await from('198.51.100.7', '203.0.113.9')).status, 200);
    assert.equal((await from('198.51.100.7', '203.0.113.9', '10.4.5.6')).status, 200);
    expectError(await from('203.0.113.9', '198.51.100.7'), 'ip_not_allowed');
    expectError(await from('203.0.113.9', '198.51.100.7, 10.4.5.6'), 'ip_not_allowed');
  });

  it('is refused, after the key, if it cannot be parsed', async () => {
    const partner = await stack.createPartner();
    const unreadable = { 'x-forwarded-for': '203.0.113.9, unknown' };
    const refused = await partner.call('GET', '/balance', { headers: unreadable });
    expectError(refused, 'ip_not_allowed');
    assert.equal(lineOf(refused.headers.get('request-id')).clientAddress, null);
    const unknown = await partner.call('GET', '/balance', {
      headers: { ...unreadable, authorization: 'Bearer none' },
    });
    expectError(unknown, 'invalid_api_key');
  });
});
