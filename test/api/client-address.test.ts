import assert from 'node:assert/strict';
import ipaddr from 'ipaddr.js';
import { createApiKey } from '../../accounts/api-keys.ts';
import { expectError } from '../support/api/answers.ts';
import { rawRequest } from '../support/api/raw-request.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';

/** How it is read is in test/unit/api/client-address.test.ts. */
describe("a client's address behind a trusted proxy", () => {
  let stack: TestStack;
  let partner: TestPartner;
  let key: string;
  before(async () => {
    const trustedProxies = ['127.0.0.0/8', '10.0.0.0/8'].map((block) => ipaddr.parseCIDR(block));
    stack = await startTestStack({ trustedProxies }, { worker: false });
    partner = await stack.createPartner();
    ({ key } = await createApiKey(stack.operator, {
      ...{ partnerId: partner.id, mode: 'test', name: null },
      ipAllowlist: ['203.0.113.0/24', '2001:db8::/32'],
    }));
  });
  after(() => stack.stop());

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
