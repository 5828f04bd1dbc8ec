import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { parkDeliveries, switchEndpoints } from '../../../commands/webhooks/endpoint-status.ts';
import { removeEndpoint, setEndpoint } from '../../../commands/webhooks/endpoints.ts';
import { newId } from '../../../crypto/new-id.ts';
import type { DeliveryStatus } from '../../../domain/event.ts';
import { openCommands, type TestCommands } from '../../support/commands/open-commands.ts';

describe('the parking of events', () => {
  let commands: TestCommands;
  let partnerId: string;

  before(async () => {
    commands = await openCommands();
  });
  after(() => commands.close());
  beforeEach(async () => {
    partnerId = await commands.createFundedPartner(1);
  });

  const set = () =>
    setEndpoint(commands.context, { partnerId, modes: ['test'], url: 'https://hooks.example.com/' });
  const turn = (status: 'enabled' | 'disabled') =>
    switchEndpoints(commands.operator, { partnerId, modes: ['test'], status });
  const park = (id: string) => parkDeliveries(commands.context.orm, [id]);

  async function write(status: DeliveryStatus): Promise<string> {
    const id = newId('evt');
    await commands.owner.query(
      `INSERT INTO event (id, partner_id, mode, type, body, created_at) VALUES ($1, $2, 'test', 'ping', '{}', now())`,
      [id, partnerId],
    );
    await commands.owner.query(
      `UPDATE delivery SET status = $2, lease_expires_at = now() + interval '1 hour', next_attempt_at = now()
       WHERE event_id = $1`,
      [id, status],
    );
    return id;
  }

  async function standing(id: string): Promise<unknown[]> {
    const { rows } = await commands.owner.query(
      'SELECT status, lease_expires_at::text, next_attempt_at <= now() AS is_due, workflow FROM delivery WHERE event_id = $1',
      [id],
    );
    return Object.values(rows[0]);
  }

  it('parks an event whose endpoint is missing or disabled', async () => {
    const id = await write('pending');
    await park(id);
    assert.deepEqual(await standing(id), ['parked', '-infinity', null, 'none']);
    await set();
    assert.deepEqual(await standing(id), ['pending', '-infinity', true, 'none']);
    await turn('disabled');
    await park(id);
    assert.deepEqual(await standing(id), ['parked', '-infinity', null, 'none']);
    await turn('enabled');
    assert.deepEqual(await standing(id), ['pending', '-infinity', true, 'none']);
  });

  it('makes an event pending if its endpoint is there again', async () => {
    await set();
    const id = await write('retrying');
    await park(id);
    assert.deepEqual(await standing(id), ['pending', '-infinity', true, 'none']);
  });

  it('informs the workflow that its event is parked, but not that it is sent after all', async () => {
    const id = await write('retrying');
    await commands.owner.query(`UPDATE delivery SET workflow = 'told' WHERE event_id = $1`, [id]);
    await park(id);
    assert.deepEqual(await standing(id), ['parked', '-infinity', null, 'untold']);
    await set();
    await commands.owner.query(`UPDATE delivery SET workflow = 'told' WHERE event_id = $1`, [id]);
    await park(id);
    assert.deepEqual(await standing(id), ['pending', '-infinity', true, 'told']);
  });

  it('leaves a delivered event as it is', async () => {
    const id = await write('delivered');
    await park(id);
    assert.deepEqual((await standing(id))[0], 'delivered');
  });

  for (const [what, prepare] of [
    ['made', async () => {}],
    [
      'enabled',
      async () => {
        await set();
        await turn('disabled');
      },
    ],
  ] as const) {
    it(`loses no event if the endpoint is ${what} at the same moment`, async () => {
      await prepare();
      const id = await write('pending');
      // Set: the account's row, the endpoint, what was parked so far; all of it not yet committed.
      const other = await commands.connect();
      try {
        await other.query('BEGIN');
        await other.query('SELECT FROM partner WHERE id = $1 FOR NO KEY UPDATE', [partnerId]);
        await other.query(
          `INSERT INTO webhook_endpoint (partner_id, mode, url, secret) VALUES ($1, 'test', 'https://x.example.com/', '')
           ON CONFLICT (partner_id, mode) DO UPDATE SET status = 'enabled', disabled_reason = NULL`,
          [partnerId],
        );
        const parked = park(id);
        assert.equal(await Promise.race([parked.then(() => 'parked'), sleep(200, 'waits')]), 'waits');
        await other.query('COMMIT');
        await parked;
        assert.deepEqual(await standing(id), ['pending', '-infinity', true, 'none']);
      } finally {
        await other.end();
      }
    });
  }

  it('loses no event while the endpoint is set and removed at the same time', async () => {
    const ids = [await write('pending'), await write('retrying')];
    await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        if (i % 4 === 0) await set();
        else if (i % 4 === 1) await removeEndpoint(commands.context.orm, { partnerId, mode: 'test' });
        else await park(ids[i % 2] as string);
      }),
    );
    await set();
    for (const id of ids) {
      await park(id);
      assert.equal((await standing(id))[0], 'pending');
    }
  });
});
