import assert from 'node:assert/strict';
import type { DeliveryStatus } from '../../domain/event.ts';
import type { QueuedEndpoint } from '../../webhooks/deliveries.ts';
import { switchEndpoints } from '../../webhooks/endpoint-status.ts';
import { removeEndpoint } from '../../webhooks/endpoints.ts';
import { giveUpDeliveries, parkDeliveries, unparkDeliveries } from '../../webhooks/parking.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { accountWithEndpoint, insertEvents } from '../support/webhooks/accounts.ts';

describe('the parking of events', () => {
  let commands: TestCommands;
  let partnerId: string;
  let endpointId: string;

  before(async () => {
    commands = await openCommands();
  });
  after(() => commands.close());
  const open = async () => {
    ({ partnerId, endpointId } = await accountWithEndpoint(commands));
  };
  beforeEach(open);

  const turn = (status: 'enabled' | 'disabled') =>
    switchEndpoints(commands.operator, { partnerId, modes: ['test'], endpointId: null, status });
  const remove = () =>
    removeEndpoint({ ...commands.context, actor: 'test' }, { partnerId, mode: 'test' }, null);
  const park = (eventId: string) => parkDeliveries(commands.context.orm, [{ eventId, endpointId }]);

  /** What the worker does until nothing is left to do. */
  async function follow(): Promise<void> {
    const { orm } = commands.context;
    for (let changed = 1; changed > 0; )
      changed = (await unparkDeliveries(orm, null)).changed + (await giveUpDeliveries(orm, null)).changed;
  }

  async function write(status: DeliveryStatus): Promise<string> {
    const [id = ''] = await insertEvents(commands, partnerId, 1);
    await commands.owner.query(
      `UPDATE delivery SET status = $2, lease_expires_at = now() + interval '4 minutes', next_attempt_at = now()
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
    const id = await write('pending');
    await turn('disabled');
    await park(id);
    assert.deepEqual(await standing(id), ['parked', '-infinity', null, 'none']);
    await turn('enabled');
    await follow();
    assert.deepEqual(await standing(id), ['pending', '-infinity', true, 'none']);
  });

  it('gives up an event whose endpoint was deleted', async () => {
    const id = await write('pending');
    const others = [await write('retrying'), await write('parked'), await write('pending')];
    await commands.owner.query(
      `UPDATE delivery SET lease_expires_at = '-infinity', workflow = 'told' WHERE event_id = ANY ($1)`,
      [others],
    );
    await remove();
    await follow();
    for (const other of others)
      assert.deepEqual(await standing(other), ['given_up', '-infinity', null, 'untold']);
    assert.deepEqual((await standing(id))[0], 'pending', 'what a relay has leased is left to it');
    await park(id);
    assert.deepEqual(await standing(id), ['given_up', '-infinity', null, 'none']);
  });

  it('informs the workflow that its event is parked, but not that it is sent after all', async () => {
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
    const id = await write('delivered');
    await park(id);
    assert.deepEqual((await standing(id))[0], 'delivered');
  });

  it('waits for nobody if an endpoint is enabled at the same moment, and loses no event', async () => {
    await turn('disabled');
    const id = await write('pending');
    // Enabling: the account's row and the endpoint, not yet committed.
    await using other = await commands.connect();
    await other.query('BEGIN');
    await other.query('SELECT FROM partner WHERE id = $1 FOR NO KEY UPDATE', [partnerId]);
    await other.query(
      `UPDATE webhook_endpoint SET status = 'enabled', disabled_reason = NULL WHERE partner_id = $1`,
      [partnerId],
    );
    await park(id);
    assert.equal((await standing(id))[0], 'parked');
    await other.query('COMMIT');
    await follow();
    assert.deepEqual(await standing(id), ['pending', '-infinity', true, 'none']);
  });

  it('loses no event while the endpoint is disabled and enabled at the same time', async () => {
    const ids = [await write('pending'), await write('retrying')];
    await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        if (i % 4 === 0) await turn('enabled');
        else if (i % 4 === 1) await turn('disabled');
        else await park(ids[i % 2] as string);
      }),
    );
    await turn('enabled');
    await follow();
    for (const id of ids) {
      await park(id);
      assert.equal((await standing(id))[0], 'pending');
    }
  });

  it('enables and deletes an endpoint without touching what waits for it', async () => {
    await turn('disabled');
    const ids = [await write('parked'), await write('parked')];
    await using other = await commands.connect();
    await other.query('BEGIN');
    await other.query('SELECT FROM delivery WHERE event_id = $1 FOR UPDATE', [ids[0]]);
    await turn('enabled');
    await follow();
    assert.equal((await standing(ids[0] as string))[0], 'parked');
    assert.equal((await standing(ids[1] as string))[0], 'pending');
    await remove();
    await follow();
    await other.query('COMMIT');
    await follow();
    for (const id of ids) assert.equal((await standing(id))[0], 'given_up');
  });

  it('takes the oldest parked events first, as many of each endpoint in turn', async () => {
    const other = await write('parked');
    await open();
    await commands.owner.query(
      `INSERT INTO event (id, partner_id, mode, type, body, created_at)
       SELECT 'evt_' || lpad(n::text, 26, '0'), $1, 'test', 'ping', '{}', now() FROM generate_series(1, 900) n`,
      [partnerId],
    );
    await commands.owner.query(`UPDATE delivery SET status = 'parked' WHERE partner_id = $1`, [partnerId]);
    const unparked = async () => {
      const { rows } = await commands.owner.query(
        `SELECT count(*)::int AS count, max(event_id) AS last FROM delivery WHERE partner_id = $1 AND status = 'pending'`,
        [partnerId],
      );
      return Object.values(rows[0]);
    };
    const turns: number[] = [];
    for (const count of [200, 600, 900]) {
      const { changed, last } = await unparkDeliveries(commands.context.orm, null);
      turns.push(changed);
      assert.equal(last, null);
      assert.equal((await standing(other))[0], 'pending');
      assert.deepEqual(await unparked(), [count, `evt_${String(count).padStart(26, '0')}`]);
    }
    assert.deepEqual(turns, [201, 400, 300]);
  });

  it('comes to every endpoint, however many have events to send', async () => {
    const endpoints: string[] = [];
    for (let i = 0; i < 20; i++) {
      await open();
      endpoints.push(await write('parked'));
    }
    const { orm } = commands.context;
    let turns = 0;
    for (let after: QueuedEndpoint | null = null; turns === 0 || after !== null; turns++)
      after = (await unparkDeliveries(orm, after)).last;
    assert.equal(turns, 3);
    for (const id of endpoints) assert.equal((await standing(id))[0], 'pending');
  });
});
