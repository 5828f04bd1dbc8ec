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
    switchEndpoints(commands.operator, { partnerId, modes: ['test'], endpointId: null, status });
  const remove = () => removeEndpoint(commands.context.orm, { partnerId, mode: 'test' }, null);
  const park = async (id: string) => {
    const { rows } = await commands.owner.query('SELECT endpoint_id FROM delivery WHERE event_id = $1', [id]);
    await parkDeliveries(commands.context.orm, [{ eventId: id, endpointId: rows[0].endpoint_id }]);
  };

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

  it('parks an event whose endpoint is disabled', async () => {
    await set();
    const id = await write('pending');
    await turn('disabled');
    await park(id);
    assert.deepEqual(await standing(id), ['parked', '-infinity', null, 'none']);
    await turn('enabled');
    assert.deepEqual(await standing(id), ['pending', '-infinity', true, 'none']);
  });

  it('gives up an event whose endpoint was deleted', async () => {
    await set();
    const id = await write('pending');
    await remove();
    assert.deepEqual((await standing(id))[0], 'pending', 'what a relay has leased is left to it');
    await park(id);
    assert.deepEqual(await standing(id), ['given_up', '-infinity', null, 'none']);
  });

  it('makes an event pending if its endpoint is there again', async () => {
    await set();
    const id = await write('retrying');
    await park(id);
    assert.deepEqual(await standing(id), ['pending', '-infinity', true, 'none']);
  });

  it('informs the workflow that its event is parked, but not that it is sent after all', async () => {
    await set();
    const id = await write('retrying');
    await turn('disabled');
    await commands.owner.query(`UPDATE delivery SET workflow = 'told' WHERE event_id = $1`, [id]);
    await park(id);
    assert.deepEqual(await standing(id), ['parked', '-infinity', null, 'untold']);
    await turn('enabled');
    await commands.owner.query(`UPDATE delivery SET workflow = 'told' WHERE event_id = $1`, [id]);
    await park(id);
    assert.deepEqual(await standing(id), ['pending', '-infinity', true, 'told']);
  });

  it('leaves a delivered event as it is', async () => {
    await set();
    const id = await write('delivered');
    await park(id);
    assert.deepEqual((await standing(id))[0], 'delivered');
  });

  it('loses no event if the endpoint is enabled at the same moment', async () => {
    await set();
    await turn('disabled');
    const id = await write('pending');
    // Enabling: the account's row, what was parked so far, the endpoint; all of it not yet committed.
    const other = await commands.connect();
    try {
      await other.query('BEGIN');
      await other.query('SELECT FROM partner WHERE id = $1 FOR NO KEY UPDATE', [partnerId]);
      await other.query(
        `UPDATE webhook_endpoint SET status = 'enabled', disabled_reason = NULL WHERE partner_id = $1`,
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

  it('loses no event while the endpoint is disabled and enabled at the same time', async () => {
    await set();
    const ids = [await write('pending'), await write('retrying')];
    await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        if (i % 4 === 0) await turn('enabled');
        else if (i % 4 === 1) await turn('disabled');
        else await park(ids[i % 2] as string);
      }),
    );
    await turn('enabled');
    for (const id of ids) {
      await park(id);
      assert.equal((await standing(id))[0], 'pending');
    }
  });
});
