import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { newId } from '../../platform/crypto/new-id.ts';
import { query } from '../../platform/db/sql.ts';
import { post } from '../support/api/post.ts';
import { asOwner, connectTo, ownerUrlOf } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import {
  countByStatus,
  readRow,
  SECRET,
  sendOverdue,
  setUrl,
  writeEvents,
} from '../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

describe('the webhook relay', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let receiver: Receiver;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
    receiver = await startReceiver();
    await setUrl(stack, partner, receiver.url);
  });
  afterEach(() => receiver.stop());

  const settled = (status: string, count: number) =>
    until(`${count} are ${status}`, async () => (await countByStatus(stack, partner))[status] === count);

  it('sends the event of a request to the API, signed over its exact bytes', async () => {
    await post(partner, '/test/credit', { amount: 100_000 });
    const card = await post(partner, '/cards', { amount: 5_000, external_ref: 'a' });
    await until('it is received', async () => receiver.received.length === 1);
    const [{ headers, body }] = receiver.received as [(typeof receiver.received)[0]];
    const event = JSON.parse(body);
    assert.deepEqual([event.type, event.data.card.id], ['card.issued', card.id]);
    const timestamp = headers['x-service-timestamp'] as string;
    assert.equal(headers['x-service-event-id'], event.id);
    assert.match(timestamp, /^\d{13}$/);
    const signed = createHash('sha256').update(timestamp + body + SECRET);
    assert.equal(headers['x-service-signature'], signed.digest('hex'));
    await settled('delivered', 1);
    const attempts =
      'SELECT number, http_status, error, answer_start FROM delivery_attempt WHERE event_id = $1';
    assert.deepEqual(await query(stack.orm.em.fork(), attempts, [event.id]), [
      { number: 1, http_status: 200, error: null, answer_start: null },
    ]);
  });

  it('gives up a delivery whose event is no longer kept, which delays no other', async () => {
    const lost = newId('evt');
    await asOwner(
      stack,
      `INSERT INTO delivery (event_id, endpoint_id, partner_id, mode, type, status)
       SELECT $1, id, partner_id, mode, 'ping', 'pending' FROM webhook_endpoint WHERE partner_id = $2`,
      [lost, partner.id],
    );
    const other = await stack.createPartner();
    await setUrl(stack, other, receiver.url);
    const [event = ''] = await writeEvents(stack, other, 1);
    await until('the other event arrives', () => receiver.attempts(event).length === 1);
    await until('the lost one is given up', async () => (await readRow(stack, lost)).status === 'given_up');
    assert.equal(receiver.received.length, 1);
  });

  it('sends a lot of events once each, and leaves no lease', async () => {
    const ids = await writeEvents(stack, partner, 600);
    await settled('delivered', 600);
    const received = receiver.received.map(({ id }) => id);
    const twice = received.filter((id, index) => received.indexOf(id) !== index);
    const complaints = stack.logLines.filter((line) => JSON.parse(line).level > 30);
    assert.deepEqual(twice, [], complaints.join('\n'));
    assert.deepEqual(received.sort(), ids.sort());
  });

  it('does not let an endpoint that hangs delay another, nor its retries', async () => {
    receiver.behave(() => {});
    const hanging = partner;
    await writeEvents(stack, hanging, 300);
    const other = await stack.createPartner();
    const quick = await startReceiver();
    try {
      await setUrl(stack, other, quick.url);
      await until('the hanging one is attempted', async () => receiver.received.length > 0);
      await writeEvents(stack, other, 200);
      await until('all are received', async () => quick.received.length === 200);
      quick.behave((request, response, number) =>
        answer(number === 200 ? 500 : 200)(request, response, number),
      );
      const [failed = ''] = await writeEvents(stack, other, 1);
      await until('it failed', async () => (await readRow(stack, failed)).status === 'retrying');
      await sendOverdue(stack, [failed]);
      await until('its retry comes', () => quick.attempts(failed).length === 2);
      assert.ok(receiver.received.length < 50, `${receiver.received.length} of the hanging one had a place`);
    } finally {
      await quick.stop();
      await query(stack.orm.em.fork(), `UPDATE delivery SET status = 'given_up' WHERE partner_id = $1`, [
        hanging.id,
      ]);
    }
  });

  it('records the attempts of every other endpoint while the row of one is locked', async () => {
    const other = await stack.createPartner();
    const otherReceiver = await startReceiver();
    await setUrl(stack, other, otherReceiver.url);
    const holder = await connectTo(ownerUrlOf(stack.config.databaseUrl));
    try {
      await holder.query('BEGIN');
      await holder.query('SELECT FROM webhook_endpoint WHERE partner_id = $1 FOR UPDATE', [partner.id]);
      await writeEvents(stack, partner, 1);
      await until('the first one is sent', () => receiver.received.length === 1);
      // Its record waits for the lock, so the next ones share a record.
      await writeEvents(stack, partner, 1);
      const [id = ''] = await writeEvents(stack, other, 1);
      await until('the other one is recorded', async () => (await readRow(stack, id)).status === 'delivered');
    } finally {
      await holder.end();
      await otherReceiver.stop();
    }
    assert.equal(otherReceiver.received.length, 1);
  });
});
