import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { withClient } from '../../../support/adapters/webhooks/clients.ts';
import { answering, startRawReceiver, startReceiver } from '../../../support/adapters/webhooks/receivers.ts';
import { untilHolds } from '../../../support/until.ts';

type Act = (socket: Socket, request: number) => unknown;

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

/** Posts in turn to a receiver that acts so. @returns what came of each, the connections, the requests it took */
async function postInTurn(times: number, act: Act) {
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

  const first =
    (then: (socket: Socket) => unknown): Act =>
    (socket, request) =>
      request === 1 ? socket.write(OK) : then(socket);
  const dropsSecond =
    (drop: 'destroy' | 'resetAndDestroy' | 'end'): Act =>
    (socket, request) =>
      request === 2 ? socket[drop]() : socket.write(OK);
  const declining: Act = (socket) => socket.write(OK.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'));
  const closing = (socket: Socket) => socket.destroy();
  const breaking: Act = first((socket) => socket.end('HTTP/1.1 2'));
  const forging: Act = (socket, request) =>
    socket.write(request === 1 ? `${OK}HTTP/1.1 200 Forged\r\ncontent-length: 6\r\n\r\nforged` : OK);
  const BOTH = ['delivered', 'delivered'];
  const CLOSED = ['delivered', 'connection_closed'];
  const SILENT = ['delivered', 'timeout'];
  const TURNS: [what: string, act: Act, outcomes: string[], requests: number, connections: number][] = [
    ['are not kept if the receiver declines', declining, BOTH, 2, 2],
    ['are replaced if the receiver destroys them as the event arrives', dropsSecond('destroy'), BOTH, 3, 2],
    ['are replaced if the receiver resets them as it arrives', dropsSecond('resetAndDestroy'), BOTH, 3, 2],
    ['are replaced if the receiver ends them as the event arrives', dropsSecond('end'), BOTH, 3, 2],
    ['are a failure if new and closed, and nothing is sent twice', closing, ['connection_closed'], 1, 1],
    ['are replaced only once, and what fails over the new one has failed', first(closing), CLOSED, 3, 2],
    ['are a failure if they break after the first byte of an answer', breaking, CLOSED, 2, 1],
    ['are a failure if they fall silent, because the event may have arrived', first(() => {}), SILENT, 2, 1],
    ['are not reused if they carry more than was asked for', forging, BOTH, 2, 2],
  ];
  for (const [what, act, outcomes, requests, connections] of TURNS) {
    it(what, async () => {
      assert.deepEqual(await postInTurn(outcomes.length, act), { outcomes, requests, connections });
    });
  }
});
