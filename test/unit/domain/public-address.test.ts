import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import fc from 'fast-check';
import { isLoopbackAddress, isPublicAddress } from '../../../domain/public-address.ts';

/** Of IPv6, and of what is no address. IPv4 is compared with Node's own list below. */
const NOT_PUBLIC: Record<string, string[]> = {
  'addresses of this host': ['::', '::1'],
  'link-local addresses': ['fe80::', 'fe80::1', 'febf::1'],
  'protocol assignments': ['2001:1::1', '2001:1ff::1'],
  'addresses for documentation': ['2001:db8::1', '3fff::1', '3fff:fff::1'],
  'addresses for benchmarking': ['2001:2::1'],
  'the sink AS112': ['2620:4f:8000::1'],
  'multicast addresses': ['ff02::1', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  'reserved addresses': ['4000::1', '5f00::1', '8000::1', 'e000::1'],
  'unique local addresses': ['fc00::1', 'fd00:ec2::254', 'fdff:ffff::1'],
  'site-local addresses': ['fec0::1', 'feff::1'],
  'IPv4-compatible addresses': ['::7f00:1', '::127.0.0.1', '::8.8.8.8', '::ffff'],
  'IPv4-mapped addresses': ['::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:7f00:1', '0:0:0:0:0:ffff:a00:1'],
  'IPv4-translated addresses': ['::ffff:0:127.0.0.1'],
  'NAT64 addresses': ['64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::a00:1', '64:ff9b:1:ffff::1'],
  '6to4 addresses': ['2002:7f00:1::', '2002:808:808::1'],
  'Teredo addresses': ['2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  'ORCHID addresses': ['2001:10::1', '2001:20::1'],
  'the discard prefix': ['100::1'],
  'names and what follows an address': [
    '',
    'localhost',
    '8.8.8.8 ',
    '8.8.8.8/8',
    '8.8.8.8.',
    '2606:4700:::1',
  ],
  'other spellings of an IPv4 address': ['127.1', '8.8', '0x8.8.8.8', '010.8.8.8', '134744072', '８.8.8.8'],
  'what is no address at all': ['8.8.8.256', '2606:4700::1111%eth0', '[2606:4700::1111]'],
};

/** By the registry of IANA and the design. */
const IPV4_RANGES = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24'],
  ...['192.168.0.0/16', '192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4', '168.63.129.16/32'],
];
const numberOf = (address: string) => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
const addressOf = (number: number) => [24, 16, 8, 0].map((bits) => (number / 2 ** bits) & 255).join('.');

describe('isPublicAddress', () => {
  for (const [range, addresses] of Object.entries(NOT_PUBLIC)) {
    it(`is false for ${range}`, () => {
      for (const address of addresses) assert.equal(isPublicAddress(address), false, address);
    });
  }

  it('is true for addresses of the internet', () => {
    const ipv6 = ['2606:4700:4700::1111', '2001:4860:4860::8888', '2a00:1450:4001:830::200e', '2003::1'];
    for (const address of ['1.1.1.1', '8.8.8.8', '93.184.215.14', ...ipv6])
      assert.equal(isPublicAddress(address), true, address);
  });

  it("agrees with Node's own block list of the registry's ranges for all of IPv4, at their ends and beside them", () => {
    const blocked = new BlockList();
    const edges: number[] = [];
    for (const range of IPV4_RANGES) {
      const [network = '', bits] = range.split('/');
      blocked.addSubnet(network, Number(bits));
      const first = numberOf(network);
      const last = first + 2 ** (32 - Number(bits)) - 1;
      edges.push(...[first - 1, first, last, last + 1].filter((edge) => edge >= 0 && edge < 2 ** 32));
    }
    const agrees = (number: number) =>
      assert.equal(isPublicAddress(addressOf(number)), !blocked.check(addressOf(number)), addressOf(number));
    edges.forEach(agrees);
    fc.assert(fc.property(fc.nat(2 ** 32 - 1), agrees), { numRuns: 2_000 });
  });
});

describe('isLoopbackAddress', () => {
  it('is true for 127.0.0.0/8 and ::1 and for nothing else', () => {
    const others = [
      '128.0.0.1',
      '0.0.0.0',
      '::',
      '::ffff:127.0.0.1',
      '::127.0.0.1',
      '127.1',
      'localhost',
      '',
    ];
    for (const address of ['127.0.0.1', '127.0.0.0', '127.255.255.255', '::1'])
      assert.equal(isLoopbackAddress(address), true, address);
    for (const address of others) assert.equal(isLoopbackAddress(address), false, address);
  });
});
