import assert from 'node:assert/strict';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { type SeededEvent, seedEvents } from '../support/webhooks/events.ts';
import { startReceiver } from '../support/webhooks/receiver.ts';

describe('operator webhook requeue of more events than a page has', () => {
  it('sends what no endpoint wanted to each one that wants it now, at the edge of a page as well', async () => {
    const stack = await sharedStack();
    const partner = await stack.createPartner();
    const seeded = Array.from(
      { length: 301 },
      (_, i): SeededEvent => ({
        ...{ type: i === 0 ? 'card.blocked' : 'card.issued', status: 'no_endpoint' },
        ageMs: (400 - i) * 1_000,
      }),
    );
    await seedEvents(stack, partner, seeded);
    await using all = await startReceiver();
    await using issued = await startReceiver();
    const create = (body: object) => partner.call('POST', '/webhook-endpoints', { body });
    assert.equal((await create({ url: all.url })).status, 201);
    assert.equal((await create({ url: issued.url, event_types: ['card.issued'] })).status, 201);
    const operate = operateIn(environmentOf(stack.config));
    const { json } = await operate(
      ...['webhook', 'requeue', '--partner', partner.id, '--status', 'no_endpoint', '--yes'],
    );
    assert.equal(json.requeued, 601);
    const rows = await asOwner<{ count: number }>(
      stack,
      `SELECT count(*)::int AS count FROM delivery WHERE partner_id = $1 AND endpoint_id <> ''
       GROUP BY endpoint_id ORDER BY endpoint_id`,
      [partner.id],
    );
    assert.deepEqual(rows, [{ count: 301 }, { count: 300 }]);
  });
});
