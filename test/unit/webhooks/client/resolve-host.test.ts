import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createHostResolver } from '../../../../webhooks/client/checked-socket.ts';
import { withClient } from '../../../support/adapters/webhooks/clients.ts';

const TYPE_A = 1;
const TYPE_AAAA = 28;
const NO_SUCH_NAME = 3;

/** Addresses by name; `never` is a name whose server gives no answer, and any other name does not exist. */
type Zone = Record<string, { v4?: string[]; v6?: string[] } | 'never'>;

/** A DNS server that knows a few names, on a free loopback port. */
async function startNameServer(zone: Zone): Promise<{ address: string; close(): void }> {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { name, type, end } = readQuestion(query);
    const known = zone[name];
    if (known === 'never') return;
    const addresses = (type === TYPE_A ? known?.v4 : type === TYPE_AAAA ? known?.v6 : undefined) ?? [];
    const header = Buffer.from(query.subarray(0, 12));
    // An answer, recursion available.
    header.writeUInt16BE(0x8180 | (known === undefined ? NO_SUCH_NAME : 0), 2);
    header.writeUInt16BE(addresses.length, 6);
    header.writeUInt32BE(0, 8);
    const records = addresses.map((address) => record(type, address));
    socket.send(Buffer.concat([header, query.subarray(12, end), ...records]), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { address: `127.0.0.1:${socket.address().port}`, close: () => socket.close() };
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** For the name that was asked about (a pointer to it), class IN, a minute. */
function record(type: number, address: string): Buffer {
  const data =
    type === TYPE_A
      ? Buffer.from(address.split('.').map(Number))
      : Buffer.from(
          address
            .split(':')
            .flatMap((part) => [Number.parseInt(part, 16) >> 8, Number.parseInt(part, 16) & 255]),
        );
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(60, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

const V6 = '2606:4700:4700:0:0:0:0:1111';

const ZONE: Zone = {
  'both.example': { v4: ['1.1.1.1', '1.0.0.1'], v6: [V6] },
  'old.example': { v4: ['1.1.1.1'] },
  'new.example': { v6: [V6] },
  'empty.example': {},
  'inside.example': { v4: ['1.1.1.1'], v6: ['0:0:0:0:0:0:0:1'] },
  'dead.example': 'never',
};

describe('the DNS resolver', () => {
  let server: Awaited<ReturnType<typeof startNameServer>>;

  before(async () => {
    server = await startNameServer(ZONE);
  });
  after(() => server.close());

  it('gives all addresses with IPv4 first', async () => {
    const resolve = createHostResolver([server.address]);
    const both = await resolve('both.example');
    assert.deepEqual(
      [both.slice(0, 2).sort(), both.slice(2)],
      [['1.0.0.1', '1.1.1.1'], ['2606:4700:4700::1111']],
    );
    assert.deepEqual(await resolve('old.example'), ['1.1.1.1']);
    assert.deepEqual(await resolve('new.example'), ['2606:4700:4700::1111']);
  });

  it('fails for a name without addresses and for one that does not exist', async () => {
    const resolve = createHostResolver([server.address]);
    for (const name of ['empty.example', 'missing.example']) {
      await assert.rejects(resolve(name), new RegExp(`${name} has no address`));
    }
  });

  it('is not held up by any number of names whose server never answers', async () => {
    const resolve = createHostResolver([server.address]);
    const ended: string[] = [];
    const look = (name: string) =>
      resolve(name).then(
        () => ended.push(name),
        () => ended.push(name),
      );
    const dead = Array.from({ length: 20 }, () => look('dead.example'));
    await look('old.example');
    assert.deepEqual(ended, ['old.example']);
    await Promise.all(dead);
    assert.equal(ended.length, 21);
  });

  it('gives the client the addresses of both families to check', async () => {
    const openSocket = () => assert.fail('connected');
    const options = { resolve: createHostResolver([server.address]), openSocket, timeoutMs: 5_000 };
    const result = await withClient(options, (post) => post('https://inside.example/'));
    assert.equal(result.error, 'address_not_allowed');
  });
});
