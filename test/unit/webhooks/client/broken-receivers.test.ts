import assert from 'node:assert/strict';
import { freePort } from '../../../../dev/free-port.ts';
import { postTo, withClient } from '../../../support/adapters/webhooks/clients.ts';
import { startRawReceiver } from '../../../support/adapters/webhooks/receivers.ts';

type Act = Parameters<typeof startRawReceiver>[0];

const HANGING: Record<string, Act> = {
  'says nothing': () => {},
  'stops in the status line': (socket) => socket.write('HTTP/1.1 20'),
  'stops in its headers': (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-slow: '),
  'drips its headers': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nx-drip: ');
    const drip = setInterval(() => socket.write('.'), 20);
    socket.once('close', () => clearInterval(drip));
  },
  'sends early hints for ever': (socket) => {
    const hint = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 20);
    socket.once('close', () => clearInterval(hint));
  },
};

const BROKEN: Record<string, [error: string, act: Act]> = {
  'closes at once': ['connection_closed', (socket) => socket.end()],
  'resets the connection': ['connection_closed', (socket) => socket.resetAndDestroy()],
  'closes in the status line': ['connection_closed', (socket) => socket.end('HTTP/1.1 20')],
  'resets the connection in its headers': [
    'connection_closed',
    (socket) => socket.write('HTTP/1.1 200 OK\r\nx: y\r\n', () => socket.resetAndDestroy()),
  ],
  'speaks another protocol': ['answer_invalid', (socket) => socket.write('SSH-2.0-OpenSSH_9.6\r\n')],
  'sends HTTP/0.9': ['answer_invalid', (socket) => socket.end('<html>hello</html>')],
  'sends an invalid status': ['answer_invalid', (socket) => socket.end('HTTP/1.1 2x0 OK\r\n\r\n')],
  'sends invalid headers': [
    'answer_invalid',
    (socket) => socket.end('HTTP/1.1 200 OK\r\n no\x01: y\r\n\r\n'),
  ],
  'sends two lengths': [
    'answer_invalid',
    (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'),
  ],
  'sends headers of more than 16 KiB': [
    'answer_invalid',
    (socket) => socket.write(`HTTP/1.1 200 OK\r\nx-long: ${'x'.repeat(20_000)}\r\n\r\n`),
  ],
  'sends headers without end': [
    'answer_invalid',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const more = setInterval(() => socket.write(`x-more: ${'x'.repeat(5_000)}\r\n`), 5);
      socket.once('close', () => clearInterval(more));
    },
  ],
  'sends a 100 that nobody asked for': [
    'answer_invalid',
    (socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'),
  ],
  'asks for another protocol': [
    'answer_invalid',
    (socket) => socket.write('HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'),
  ],
};

describe('a receiver that sends no status in time', () => {
  for (const [what, act] of Object.entries(HANGING)) {
    it(`is left at the deadline if it ${what}`, async () => {
      await using receiver = await startRawReceiver(act);
      await withClient({ timeoutMs: 300 }, async (post) => {
        const result = await post(`http://127.0.0.1:${receiver.port}/`);
        assert.deepEqual([result.outcome, result.httpStatus, result.error], ['failed', null, 'timeout']);
      });
      assert.equal(receiver.connections, 1);
    });
  }
});

describe('a receiver that sends no status at all', () => {
  for (const [what, [error, act]] of Object.entries(BROKEN)) {
    it(`fails with ${error} if it ${what}`, async () => {
      const receiver = startRawReceiver(act);
      const result = await postTo(receiver);
      const { durationMs: _, ...failure } = result;
      assert.deepEqual(failure, { outcome: 'failed', httpStatus: null, error, answerStart: null });
      assert.equal((await receiver).connections, 1);
    });
  }

  it('fails with connection_refused if it does not listen', async () => {
    const url = `http://127.0.0.1:${await freePort()}/`;
    const result = await withClient({}, (post) => post(url));
    assert.deepEqual([result.outcome, result.error], ['failed', 'connection_refused']);
  });
});

describe('a failure of this machine', () => {
  it('is thrown and not blamed on the receiver, for example when no file descriptors are left', async () => {
    const openSocket = () =>
      Promise.reject(Object.assign(new Error('too many open files'), { code: 'EMFILE' }));
    const posted = withClient({ openSocket }, (post) => post('http://127.0.0.1:3000/'));
    await assert.rejects(posted, { name: 'OwnFailure' });
  });
});
