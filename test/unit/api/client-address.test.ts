import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import { createReadClientAddress } from '../../../api/http/client-address.ts';

describe("a client's address", () => {
  const read = createReadClientAddress(
    ['10.0.0.0/8', '192.0.2.7/32', '2001:db8:1::/48'].map((block) => ipaddr.parseCIDR(block)),
  );
  const addressOf = (remoteAddress: string | undefined, forwarded?: string) =>
    read({
      socket: { remoteAddress },
      headers: { 'x-forwarded-for': forwarded },
    } as unknown as IncomingMessage);

  for (const [what, connection, forwarded, told] of [
    ["the connection's", '203.0.113.5', undefined, '203.0.113.5'],
    [
      "the connection's, whatever a client that is no trusted proxy says",
      '192.0.2.8',
      '1.1.1.1',
      '192.0.2.8',
    ],
    ["the connection's, whatever nonsense it says", '2001:db8:2::1', 'nonsense', '2001:db8:2::1'],
    ['the one that a trusted proxy forwards', '10.1.2.3', '198.51.100.1', '198.51.100.1'],
    [
      'the rightmost forwarded one that is no trusted proxy',
      '10.1.2.3',
      '1.1.1.1, 198.51.100.1,10.9.9.9 , 192.0.2.7',
      '198.51.100.1',
    ],
    ['that one in IPv6', '2001:db8:1::5', '1.1.1.1, 2001:DB8:0002::0001', '2001:db8:2::1'],
    ['the same with nonsense to the left', '10.1.2.3', 'unknown, <b>, , 198.51.100.1', '198.51.100.1'],
    ['the leftmost one if all are trusted proxies', '10.1.2.3', '10.0.0.1, 10.0.0.2', '10.0.0.1'],
    ["the proxy's if it forwarded none", '10.1.2.3', undefined, '10.1.2.3'],
    ['the IPv4 address that an IPv6 address maps', '::ffff:203.0.113.5', undefined, '203.0.113.5'],
    ['the one that a forwarded one maps', '::ffff:10.1.2.3', '::ffff:c633:6401', '198.51.100.1'],
  ] as const)
    it(`is ${what}`, () => assert.equal(addressOf(connection, forwarded), told));

  for (const hop of ['', 'unknown', '198.51.100.1:443', '[2001:db8::1]', '0x7f.1', '010.0.0.1', '1.2.3.256'])
    it(`cannot be told if the proxy forwarded ${JSON.stringify(hop)}`, () =>
      assert.equal(addressOf('10.1.2.3', `198.51.100.1, ${hop}`), null));

  it('cannot be told if the connection is gone', () => {
    assert.equal(addressOf(undefined), null);
  });
});
