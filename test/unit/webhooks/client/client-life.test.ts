import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createWebhookClient } from '../../../../webhooks/client/webhook-client.ts';
import { BODY, startRawReceiver } from '../../../support/adapters/webhooks/receivers.ts';
import { untilHolds } from '../../../support/until.ts';

const UNSIGNED = { endpointId: 'we_1', body: BODY, sign: () => ({}) };
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

describe('the webhook client', () => {
  it('waits for attempts under way when it closes', async () => {
    let answer = () => {};
    await using receiver = await startRawReceiver((socket) => {
      answer = () => void socket.write(OK);
    });
    const client = createWebhookClient({ timeoutMs: 10_000, allowLoopbackHttp: true });
    const delivery = { ...UNSIGNED, url: `http://127.0.0.1:${receiver.port}/` };
    const ended: string[] = [];
    const underWay = client.deliver(delivery).then(({ outcome }) => ended.push(outcome));
    await untilHolds(() => assert.equal(receiver.open.size, 1));
    const closed = client.close().then(() => ended.push('closed'));
    await assert.rejects(client.deliver(delivery), /closed/);
    await new Promise(setImmediate);
    assert.deepEqual(ended, []);
    answer();
    await Promise.all([underWay, closed]);
    assert.deepEqual(ended, ['delivered', 'closed']);
  });

  it('closes its idle connections at once when it closes', async () => {
    await using receiver = await startRawReceiver((socket) => socket.write(OK));
    const gone = new Promise((resolve) => {
      receiver.onConnection = (socket) => once(socket, 'close').then(resolve);
    });
    const client = createWebhookClient({ timeoutMs: 10_000, allowLoopbackHttp: true });
    await client.deliver({ ...UNSIGNED, url: `http://127.0.0.1:${receiver.port}/` });
    await client.close();
    await gone;
  });

  it('leaves nothing open after an attempt that timed out', async () => {
    const receiver = await startRawReceiver(() => {});
    const gone = new Promise((resolve) => {
      receiver.onConnection = (socket) => once(socket, 'close').then(resolve);
    });
    const client = createWebhookClient({ timeoutMs: 200, allowLoopbackHttp: true });
    try {
      await client.deliver({ ...UNSIGNED, url: `http://127.0.0.1:${receiver.port}/` });
      await gone;
    } finally {
      await client.close();
      await receiver.close();
    }
  });

  it("throws for a header that cannot be sent, since that is not the receiver's failure", async () => {
    const receiver = await startRawReceiver(() => {});
    const client = createWebhookClient({ timeoutMs: 5_000, allowLoopbackHttp: true });
    const url = `http://127.0.0.1:${receiver.port}/`;
    try {
      await assert.rejects(client.deliver({ ...UNSIGNED, url, sign: () => ({ 'x-a': 'b\r\nc: d' }) }), {
        code: 'UND_ERR_INVALID_ARG',
      });
    } finally {
      await client.close();
      await receiver.close();
    }
  });
});
