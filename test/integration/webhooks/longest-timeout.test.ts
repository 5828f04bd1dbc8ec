import assert from 'node:assert/strict';
import { readConfig } from '../../../config/service.ts';
import { environmentOf } from '../../support/crash/processes.ts';
import { startTestStack, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { readRow, setUrl, writeEvents } from '../../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

describe('the longest allowed WEBHOOK_TIMEOUT', function () {
  this.timeout(180_000);
  let stack: TestStack;
  let receiver: Receiver;
  before(async () => {
    stack = await startTestStack({ webhookTimeoutMs: 20_000, webhookDelaysMs: [10] });
    receiver = await startReceiver();
    receiver.behave((request, response, number) => {
      if (number === 0) answer(500)(request, response, number);
    });
  });
  after(async () => {
    await receiver.stop();
    await stack.stop();
  });

  it('lets a retry to a hanging receiver fail, and the event be given up', async () => {
    assert.equal(readConfig(environmentOf(stack.config)).webhookTimeoutMs, 20_000);
    const partner = await stack.createPartner();
    await setUrl(stack, partner, receiver.url);
    const [id = ''] = await writeEvents(stack, partner, 1);
    await until('it is given up', async () => (await readRow(stack, id)).status === 'given_up');
    assert.equal((await readRow(stack, id)).attempt_count, 2);
    assert.equal(receiver.received.length, 2);
  });
});
