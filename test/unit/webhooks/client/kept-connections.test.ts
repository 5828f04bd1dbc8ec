import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { withClient } from '../../../support/adapters/webhooks/clients.ts';
import { answering, startRawReceiver, startReceiver } from '../../../support/adapters/webhooks/receivers.ts';
import { untilHolds } from '../../../support/until.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

/** Posts in turn to a receiver that acts so. @returns what came of each, the connections, the requests it took */
async function postInTurn(times: number, act: (socket: Socket, request: number) => void) {
  let requests = 0;
  await using receiver = await startRawReceiver((socket, request) => {
    requests = request;
    act(socket, request);
  });
  const outcomes = await withClient({ timeoutMs: 3_000 }, async (post) => {
    const results = [];
    for (let i = 0; i < times; i++) results.push(await post(`http://127.0.0.1:${receiver.port}/`));
    return results.map(({ outcome, error }) => error ?? outcome);
  });
  return { outcomes, requests, connections: receiver.connections };
}

describe('kept-alive connections', () => {
  it('are reused, one for each attempt under way', async () => {
    await using receiver = await startReceiver(answering(200));
    await withClient({}, async (post) => {
      for (let i = 0; i < 10; i++) await post(`http://127.0.0.1:${receiver.port}/`);
      assert.equal(receiver.connections, 1);
      for (let i = 0; i < 3; i++)
        await Promise.all([1, 2, 3].map(() => post(`http://127.0.0.1:${receiver.port}/`)));
      assert.equal(receiver.connections, 3);
    });
    await untilHolds(() => assert.equal(receiver.open.size, 0));
  });

  it('are not kept if the receiver declines', async () => {
    const closing = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n';
    assert.deepEqual(await postInTurn(3, (socket) => socket.write(closing)), {
      outcomes: ['delivered', 'delivered', 'delivered'],
      requests: 3,
      connections: 3,
    });
  });

  it('cause no failure if the receiver closed them while they were idle', async () => {
    await using receiver = await startRawReceiver((socket) => socket.end(OK));
    await withClient({}, async (post) => {
      for (let i = 1; i <= 3; i++) {
        assert.equal((await post(`http://127.0.0.1:${receiver.port}/`)).outcome, 'delivered');
        await untilHolds(() => assert.equal(receiver.open.size, 0));
        assert.equal(receiver.connections, i);
      }
    });
  });

  for (const away of ['destroy', 'resetAndDestroy', 'end'] as const) {
    it(`are replaced if the receiver closes them as the event arrives, by ${away}()`, async () => {
      const dropping = (socket: Socket, request: number) =>
        request === 2 ? socket[away]() : socket.write(OK);
      assert.deepEqual(await postInTurn(2, dropping), {
        outcomes: ['delivered', 'delivered'],
        requests: 3,
        connections: 2,
      });
    });
  }

  it('are a failure if they are new and closed, and nothing is sent twice', async () => {
    assert.deepEqual(await postInTurn(1, (socket) => socket.destroy()), {
      outcomes: ['connection_closed'],
      requests: 1,
      connections: 1,
    });
  });

  it('are replaced only once, and an attempt that fails over the new one has failed', async () => {
    assert.deepEqual(
      await postInTurn(2, (socket, request) => (request === 1 ? socket.write(OK) : socket.destroy())),
      {
        outcomes: ['delivered', 'connection_closed'],
        requests: 3,
        connections: 2,
      },
    );
  });

  it('are a failure if they break after the first byte of an answer', async () => {
    const breaking = (socket: Socket, request: number) =>
      request === 1 ? socket.write(OK) : socket.end('HTTP/1.1 2');
    assert.deepEqual(await postInTurn(2, breaking), {
      outcomes: ['delivered', 'connection_closed'],
      requests: 2,
      connections: 1,
    });
  });

  it('are a failure if they fall silent, because the event may have arrived', async () => {
    const silent = (socket: Socket, request: number) => request === 1 && socket.write(OK);
    assert.deepEqual(await postInTurn(2, silent), {
      outcomes: ['delivered', 'timeout'],
      requests: 2,
      connections: 1,
    });
  });

  it('are not reused if they carry more than was asked for', async () => {
    const forging = (socket: Socket, request: number) =>
      socket.write(request === 1 ? `${OK}HTTP/1.1 200 Forged\r\ncontent-length: 6\r\n\r\nforged` : OK);
    assert.deepEqual(await postInTurn(2, forging), {
      outcomes: ['delivered', 'delivered'],
      requests: 2,
      connections: 2,
    });
  });
});
