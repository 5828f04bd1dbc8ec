import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const TYPE_A = 1;
const TYPE_AAAA = 28;
const NO_SUCH_NAME = 3;

/** Addresses by name; `never` is a name whose server gives no answer, and any other name does not exist. */
export type Zone = Record<string, { v4?: string[]; v6?: string[] } | 'never'>;

/** A DNS server that knows a few names, on a free loopback port. */
export async function startNameServer(zone: Zone): Promise<{ address: string; close(): void }> {
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
