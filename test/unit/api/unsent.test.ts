import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { countUnsent } from '../../../api/http/unsent.ts';

const ACCOUNT = { partnerId: 'prt_1', mode: 'test' } as const;
const BYTES = 5 * 1_048_576;
const LIMITS = { stallMs: 10_000, maxMs: 60_000, maxUnsentBytes: 4 * 1_048_576 };

describe('what an account has not read', () => {
  const server = createServer();
  before(() => once(server.listen(0, '127.0.0.1'), 'listening'));
  after(() => server.close());

  async function ask() {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const [req, res]: [IncomingMessage, ServerResponse] = (await once(server, 'request')) as never;
    return { client, req, res };
  }

  it('is not counted once its client has left', async () => {
    const unsent = countUnsent(LIMITS);
    const { client, req, res } = await ask();
    const closed = once(req.socket, 'close');
    client.destroy();
    await closed;
    unsent.add(ACCOUNT, BYTES, req, res);
    unsent.check(ACCOUNT);
  });
});
