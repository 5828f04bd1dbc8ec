import assert from 'node:assert/strict';
import {
  IpAllowlist,
  isInBlock,
  limitedAddress,
  parseAddress,
  parseBlock,
  spellBlock,
} from '../../../domain/ip-address.ts';

describe('a block of an allowlist', () => {
  const SPELLINGS: [given: string, shown: string | null][] = [
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7/32', '203.0.113.7'],
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['10.1.2.3/9', '10.0.0.0/9'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['2001:DB8::1/32', '2001:db8::/32'],
    ['2001:db8:0:0:0:0:0:1', '2001:db8::1'],
    ['::/0', '::/0'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['::ffff:a01:203', '10.1.2.3'],
    ['::ffff:10.1.2.3/104', '10.0.0.0/8'],
    ['::ffff:0:0/96', '0.0.0.0/0'],
    ['::ffff:10.1.2.3/95', null],
    ['fe80::1%eth0', null],
    ['010.0.0.1', null],
    ['127.1', null],
    ['0x7f.0.0.1', null],
    ['10.0.0.0/33', null],
    ['10.0.0.0/08', null],
    ['10.0.0.0/-1', null],
    ['10.0.0.0/', null],
    ['10.0.0.0/8/8', null],
    ['2001:db8::/129', null],
    [' 10.0.0.1', null],
    ['', null],
    ['localhost', null],
  ];
  for (const [given, shown] of SPELLINGS) {
    it(`is ${shown === null ? 'refused' : `shown as ${shown}`} if it is given as ${JSON.stringify(given)}`, () => {
      const block = parseBlock(given);
      assert.equal(block === null ? null : spellBlock(block), shown);
    });
  }

  it('contains the addresses of its kind that begin like it', () => {
    const contains = (block: string, address: string) => {
      const [parsed, of] = [parseBlock(block), parseAddress(address)];
      assert.ok(parsed !== null && of !== null);
      return isInBlock(of, parsed);
    };
    assert.ok(contains('10.0.0.0/9', '10.127.255.255'));
    assert.ok(!contains('10.0.0.0/9', '10.128.0.0'));
    assert.ok(contains('10.0.0.0/8', '::ffff:10.1.2.3'));
    assert.ok(contains('2001:db8::/33', '2001:db8:7fff::1'));
    assert.ok(!contains('2001:db8::/33', '2001:db8:8000::1'));
    assert.ok(!contains('::/0', '10.0.0.1'));
    assert.ok(!contains('0.0.0.0/0', '2001:db8::1'));
  });

  it('is one of up to 50, each of which is listed once', () => {
    assert.deepEqual(IpAllowlist.parse(['10.0.0.1', '10.0.0.1/32', '::ffff:10.0.0.1']), ['10.0.0.1']);
    const many = Array.from({ length: 51 }, (_, index) => `10.0.0.${index}`);
    assert.equal(IpAllowlist.parse(many.slice(1)).length, 50);
    assert.ok(!IpAllowlist.safeParse(many).success);
    assert.ok(!IpAllowlist.safeParse([]).success);
  });
});

describe('an address that a limit counts', () => {
  const COUNTED: [given: string | null, as: string][] = [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    [null, 'none'],
    ['x', 'none'],
  ];
  for (const [given, as] of COUNTED)
    it(`is ${as} for ${given}`, () => assert.equal(limitedAddress(given), as));
});
