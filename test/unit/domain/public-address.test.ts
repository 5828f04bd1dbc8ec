import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import fc from 'fast-check';
import { isLoopbackAddress, isPublicAddress } from '../../../domain/public-address.ts';

/** First and last of each range, by the registries of IANA and the design; the neighbours that are public below. */
const NOT_PUBLIC: Record<string, string[]> = {
  'addresses of this host': ['0.0.0.0', '0.255.255.255', '::'],
  'private addresses': [
    '10.0.0.0',
    '10.255.255.255',
    '172.16.0.0',
    '172.31.255.255',
    '192.168.0.0',
    '192.168.255.255',
  ],
  'carrier-grade NAT': ['100.64.0.0', '100.127.255.255', '100.100.100.200'],
  'loopback addresses': ['127.0.0.0', '127.0.0.1', '127.255.255.255', '::1'],
  'link-local addresses': [
    '169.254.0.0',
    '169.254.169.254',
    '169.254.255.255',
    'fe80::',
    'fe80::1',
    'febf::1',
  ],
  'protocol assignments': ['192.0.0.0', '192.0.0.192', '192.0.0.255', '2001:1::1', '2001:1ff::1'],
  'addresses for documentation': [
    '192.0.2.1',
    '198.51.100.1',
    '203.0.113.255',
    '2001:db8::1',
    '3fff::1',
    '3fff:fff::1',
  ],
  'addresses for benchmarking': ['198.18.0.0', '198.19.255.255', '2001:2::1'],
  'relays and sinks': ['192.88.99.1', '192.31.196.1', '192.52.193.1', '192.175.48.1', '2620:4f:8000::1'],
  'multicast addresses': [
    '224.0.0.0',
    '239.255.255.255',
    'ff02::1',
    'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
  ],
  'reserved addresses': ['240.0.0.0', '255.255.255.254', '4000::1', '5f00::1', '8000::1', 'e000::1'],
  'the broadcast address': ['255.255.255.255'],
  "Azure's own services": ['168.63.129.16'],
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
  'anything that is not an address in its usual spelling': [
    ...[
      '',
      'localhost',
      '127.1',
      '8.8',
      '0x8.8.8.8',
      '010.8.8.8',
      '08.8.8.8',
      '8.8.8.8 ',
      '8.8.8.8/8',
      '134744072',
    ],
    ...['8.8.8.256', '2606:4700::1111%eth0', '[2606:4700::1111]', '2606:4700:::1', '８.8.8.8', '8.8.8.8.'],
  ],
};

const PUBLIC = [
  ...[
    '1.0.0.0',
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
  ],
  ...[
    '128.0.0.0',
    '168.63.129.15',
    '168.63.129.17',
    '169.253.255.255',
    '169.255.0.0',
    '172.15.255.255',
    '172.32.0.0',
  ],
  ...['192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0', '223.255.255.255', '93.184.215.14'],
  ...['2606:4700:4700::1111', '2001:4860:4860::8888', '2a00:1450:4001:830::200e', '2003::1', '2400:cb00::1'],
];

describe('isPublicAddress', () => {
  for (const [range, addresses] of Object.entries(NOT_PUBLIC)) {
    it(`is false for ${range}`, () => {
      for (const address of addresses) assert.equal(isPublicAddress(address), false, address);
    });
  }

  it('is true for addresses of the internet, including those next to the ranges', () => {
    for (const address of PUBLIC) assert.equal(isPublicAddress(address), true, address);
  });

  it("agrees with Node's own block list of the registry's ranges for all of IPv4", () => {
    const blocked = new BlockList();
    const ranges = [
      ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
      ...['192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24'],
      ...['192.168.0.0/16', '192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
      ...['224.0.0.0/4', '240.0.0.0/4', '168.63.129.16/32'],
    ];
    for (const range of ranges) {
      const [network = '', bits] = range.split('/');
      blocked.addSubnet(network, Number(bits));
    }
    const near = fc.constantFrom(...ranges.map((range) => range.split('/')[0]?.split('.').map(Number) ?? []));
    const byte = fc.nat(255);
    const address = fc
      .tuple(near, fc.nat(4), byte, byte, byte, byte)
      .map(([parts, kept, ...random]) => [...parts.slice(0, kept), ...random].slice(0, 4).join('.'));
    fc.assert(
      fc.property(address, (text) => assert.equal(isPublicAddress(text), !blocked.check(text), text)),
      { numRuns: 2_000 },
    );
  });
});

describe('isLoopbackAddress', () => {
  it('is true for 127.0.0.0/8 and ::1 and for nothing else', () => {
    for (const address of ['127.0.0.1', '127.0.0.0', '127.255.255.255', '::1']) {
      assert.equal(isLoopbackAddress(address), true, address);
    }
    for (const address of [
      '128.0.0.1',
      '0.0.0.0',
      '::',
      '::ffff:127.0.0.1',
      '::127.0.0.1',
      '127.1',
      'localhost',
      '',
    ]) {
      assert.equal(isLoopbackAddress(address), false, address);
    }
  });
});
