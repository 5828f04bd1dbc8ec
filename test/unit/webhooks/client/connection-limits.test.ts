import assert from 'node:assert/strict';
import { createWebhookClient } from '../../../../webhooks/client/webhook-client.ts';
import { withClient } from '../../../support/adapters/webhooks/clients.ts';
import {
  answering,
  BODY,
  type Receiver,
  startRawReceiver,
  startReceiver,
} from '../../../support/adapters/webhooks/receivers.ts';
import { untilHolds } from '../../../support/until.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
const urlOf = (receiver: Receiver, path = '/') => `http://127.0.0.1:${receiver.port}${path}`;

describe('webhook connections', () => {
  it("are limited for each endpoint, and an attempt's time starts when it has a connection", async () => {
    // The first hangs until its time is over, so a time that began with waiting would be over too.
    await using receiver = await startRawReceiver((socket, request) => request > 1 && socket.write(OK));
    await withClient({ timeoutMs: 2_000, connectionsPerEndpoint: 1 }, async (post) => {
      const results = await Promise.all([1, 2, 3].map(() => post(urlOf(receiver))));
      assert.deepEqual(
        results.map(({ error, outcome }) => error ?? outcome),
        ['timeout', 'delivered', 'delivered'],
      );
      assert.equal(receiver.connections, 2);
    });
  });

  it('are not shared by endpoints on the same host, so one that hangs delays nobody', async () => {
    await using receiver = await startReceiver((request, response) => {
      if (request.url !== '/hang') answering(200)(request, response);
    });
    await withClient({ timeoutMs: 2_000, connectionsPerEndpoint: 1 }, async (post) => {
      const ended: string[] = [];
      await Promise.all(
        ['/hang', '/hang', '/a', '/a', '/b'].map(async (path) => {
          await post(urlOf(receiver, path));
          ended.push(path);
        }),
      );
      assert.deepEqual(ended.slice(0, 3).sort(), ['/a', '/a', '/b']);
    });
  });

  it('are not shared by endpoints with the same URL either', async () => {
    // The first hangs, and the second has its connection meanwhile.
    await using receiver = await startRawReceiver((socket, request) => request > 1 && socket.write(OK));
    await withClient({ timeoutMs: 60_000, connectionsPerEndpoint: 1 }, async (post) => {
      const hanging = post(urlOf(receiver), 'we_1');
      await untilHolds(() => assert.equal(receiver.open.size, 1));
      assert.equal((await post(urlOf(receiver), 'we_2')).outcome, 'delivered');
      await receiver.close();
      assert.equal((await hanging).error, 'connection_closed');
    });
  });

  it('come before the signature, so the time in it is that of the attempt', async () => {
    const answers: (() => unknown)[] = [];
    await using receiver = await startRawReceiver((socket) => answers.push(() => socket.write(OK)));
    const options = { timeoutMs: 60_000, allowLoopbackHttp: true, connectionsPerEndpoint: 1 };
    const client = createWebhookClient(options);
    const signed: string[] = [];
    const both = ['first', 'second'].map((name) => {
      const sign = () => ({ 'x-number': String(signed.push(name)) });
      return client.deliver({ endpointId: 'we_1', url: urlOf(receiver), body: BODY, sign });
    });
    await untilHolds(() => assert.equal(answers.length, 1));
    assert.deepEqual(signed, ['first']);
    answers[0]?.();
    await untilHolds(() => assert.equal(answers.length, 2));
    answers[1]?.();
    await Promise.all(both);
    assert.deepEqual(signed, ['first', 'second']);
    await client.close();
  });

  it('are kept for some endpoints only, and those used longest ago are closed first', async () => {
    await using receiver = await startReceiver(answering(200));
    await withClient({ endpointsKept: 3 }, async (post) => {
      for (let i = 0; i < 5; i++) await post(urlOf(receiver, `/${i}`));
      await untilHolds(() => assert.equal(receiver.open.size, 3));
      await post(urlOf(receiver, '/4'));
      assert.equal(receiver.connections, 5);
      await post(urlOf(receiver, '/0'));
      assert.equal(receiver.connections, 6);
    });
  });
});
