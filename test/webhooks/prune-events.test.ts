import assert from 'node:assert/strict';
import type pg from 'pg';
import { DeliveryStatus } from '../../domain/event.ts';
import { lowestId, newId } from '../../platform/crypto/new-id.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { pruneEvents } from '../../webhooks/prune-events.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';

const DAY_MS = 24 * 3_600_000;

describe('the pruning of events', () => {
  let commands: TestCommands;
  let orm: Orm;
  let owner: pg.Client;
  let partnerId: string;

  beforeEach(async () => {
    commands = await openCommands();
    owner = commands.owner;
    orm = commands.context.orm;
    partnerId = await commands.createFundedPartner(1);
  });
  afterEach(() => commands.close());

  /** @returns the event's id; it has one attempt */
  async function write(ageMs: number, status: DeliveryStatus): Promise<string> {
    const at = new Date(Date.now() - ageMs);
    const id = lowestId('evt', at).slice(0, 14) + newId('evt').slice(14);
    await owner.query(
      `INSERT INTO event (id, partner_id, mode, type, body, created_at) VALUES ($1, $2, 'test', 'ping', '{}', $3)`,
      [id, partnerId, at],
    );
    await owner.query('UPDATE delivery SET status = $2, attempt_count = 1 WHERE event_id = $1', [id, status]);
    await owner.query(
      `INSERT INTO delivery_attempt (event_id, endpoint_id, number, started_at, duration_ms, delivered)
       VALUES ($1, '', 1, $2, 1, true)`,
      [id, at],
    );
    return id;
  }

  async function left(): Promise<string[]> {
    const { rows } = await owner.query<{ id: string; attempts: string }>(
      `SELECT e.id, count(a.number) AS attempts FROM event e JOIN delivery d ON d.event_id = e.id
         LEFT JOIN delivery_attempt a ON a.event_id = e.id GROUP BY e.id ORDER BY e.id`,
    );
    assert.ok(rows.every((row) => row.attempts === '1'));
    return rows.map((row) => row.id);
  }

  it('removes events that are older than 30 days, but not those that are still being sent', async () => {
    const kept: string[] = [];
    for (const status of DeliveryStatus.options) {
      const old = await write(30 * DAY_MS + 60_000, status);
      const young = await write(30 * DAY_MS - 60_000, status);
      kept.push(young, ...(status === 'pending' || status === 'retrying' ? [old] : []));
    }
    await pruneEvents(orm);
    assert.deepEqual(await left(), kept.sort());
    await pruneEvents(orm);
    assert.deepEqual(await left(), kept);
  });

  it('continues past batches that are all still being sent', async () => {
    const stuck = [];
    for (let i = 0; i < 5; i++) stuck.push(await write(40 * DAY_MS, 'retrying'));
    for (let i = 0; i < 7; i++) await write(35 * DAY_MS, 'delivered');
    await pruneEvents(orm, { batch: 2 });
    assert.deepEqual(await left(), stuck.sort());
  });

  it('waits for nobody, and leaves a locked event for the next round', async () => {
    const [held, free] = [await write(40 * DAY_MS, 'given_up'), await write(40 * DAY_MS, 'given_up')];
    await owner.query('BEGIN');
    await owner.query(`UPDATE delivery SET status = 'retrying' WHERE event_id = $1`, [held]);
    await pruneEvents(orm);
    await owner.query('ROLLBACK');
    assert.deepEqual(await left(), [held]);
    assert.notEqual(held, free);
    await pruneEvents(orm);
    assert.deepEqual(await left(), []);
  });

  it('does no harm if two workers do it at once', async () => {
    for (let i = 0; i < 20; i++) await write(40 * DAY_MS, 'delivered');
    const [young] = [await write(0, 'delivered')];
    await Promise.all([pruneEvents(orm, { batch: 3 }), pruneEvents(orm, { batch: 3 })]);
    await pruneEvents(orm);
    assert.deepEqual(await left(), [young]);
  });
});
