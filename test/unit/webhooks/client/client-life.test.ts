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

  for (const [what, timeoutMs, answer] of [
    ['closes its idle connections at once when it closes', 10_000, OK],
    ['leaves nothing open after an attempt that timed out', 200, ''],
  ] as const) {
    it(what, async () => {
      await using receiver = await startRawReceiver((socket) => socket.write(answer));
      const gone = new Promise((resolve) => {
        receiver.onConnection = (socket) => once(socket, 'close').then(resolve);
      });
      const client = createWebhookClient({ timeoutMs, allowLoopbackHttp: true });
      await client.deliver({ ...UNSIGNED, url: `http://127.0.0.1:${receiver.port}/` });
      if (answer === OK) await client.close();
      await gone;
      await client.close();
    });
  }

  it("throws for a header that cannot be sent, since that is not the receiver's failure", async () => {
    await using receiver = await startRawReceiver(() => {});
    const client = createWebhookClient({ timeoutMs: 5_000, allowLoopbackHttp: true });
    const url = `http://127.0.0.1:${receiver.port}/`;
    const delivery = { ...UNSIGNED, url, sign: () => ({ 'x-a': 'b\r\nc: d' }) };
    await assert.rejects(client.deliver(delivery), { code: 'UND_ERR_INVALID_ARG' });
    await client.close();
  });
});
