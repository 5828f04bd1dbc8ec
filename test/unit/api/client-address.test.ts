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

  it("is the connection's, whatever a client that is no trusted proxy says", () => {
    assert.equal(addressOf('203.0.113.5'), '203.0.113.5');
    assert.equal(addressOf('203.0.113.5', '198.51.100.1'), '203.0.113.5');
    assert.equal(addressOf('192.0.2.8', '198.51.100.1'), '192.0.2.8');
    assert.equal(addressOf('2001:db8:2::1', 'nonsense'), '2001:db8:2::1');
  });

  it('is the rightmost forwarded address that is no trusted proxy', () => {
    assert.equal(addressOf('10.1.2.3', '198.51.100.1'), '198.51.100.1');
    assert.equal(addressOf('10.1.2.3', '1.1.1.1, 198.51.100.1,10.9.9.9 , 192.0.2.7'), '198.51.100.1');
    assert.equal(addressOf('2001:db8:1::5', '1.1.1.1, 2001:DB8:0002::0001'), '2001:db8:2::1');
  });

  it('does not depend on what the client wrote to the left of it, be it nonsense', () => {
    assert.equal(addressOf('10.1.2.3', 'unknown, <script>, , 198.51.100.1'), '198.51.100.1');
  });

  it('is the leftmost one if all are trusted proxies, and the proxy if it forwarded none', () => {
    assert.equal(addressOf('10.1.2.3', '10.0.0.1, 10.0.0.2'), '10.0.0.1');
    assert.equal(addressOf('10.1.2.3'), '10.1.2.3');
  });

  it('is the IPv4 address that an IPv6 address maps', () => {
    assert.equal(addressOf('::ffff:203.0.113.5'), '203.0.113.5');
    assert.equal(addressOf('::ffff:10.1.2.3', '::ffff:c633:6401'), '198.51.100.1');
  });

  for (const hop of [
    '',
    'unknown',
    '198.51.100.1:443',
    '[2001:db8::1]',
    '0x7f.1',
    '010.0.0.1',
    '127.1',
    '1.2.3.256',
  ]) {
    it(`cannot be told if the proxy forwarded ${JSON.stringify(hop)}`, () => {
      assert.equal(addressOf('10.1.2.3', `198.51.100.1, ${hop}`), null);
    });
  }

  it('cannot be told if the connection is gone', () => {
    assert.equal(addressOf(undefined), null);
  });
});
