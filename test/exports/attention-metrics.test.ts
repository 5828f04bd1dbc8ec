import assert from 'node:assert/strict';
import { newId } from '../../platform/crypto/new-id.ts';
import { ATTENTION_KINDS, type AttentionKind } from '../../platform/monitoring/attention-item.ts';
import { column } from '../support/column.ts';
import { readMetrics } from '../support/metrics.ts';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { setUrl, writeEvents } from '../support/webhooks/events.ts';

/** What each kind is, is asked where it comes from; here are those that wait, and for how many minutes the oldest of each has. */
const WAITED_MINUTES: Partial<Record<AttentionKind, number>> = {
  webhook: 31,
  adjustment: 18,
  network_inbox: 19,
  // Nobody knows since when.
  server_log: 0,
};

describe('the metrics of what waits for a person or a delivery', () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack({}, { worker: false });
  });
  after(() => stack.stop());

  /** The samples of one gauge, by the value of their label; undefined while nobody has measured anything. */
  async function read(name: string): Promise<Record<string, number> | undefined> {
    const text = await readMetrics(stack);
    const samples = [...text.matchAll(/^(\w+)\{(?:kind|for)="(\w+)"\} (\S+)$/gm)];
    const found = samples.filter(([, of]) => of === name);
    if (found.length === 0) return undefined;
    return Object.fromEntries(found.map(([, , kind = '', value]) => [kind, Number(value)]));
  }
  const measured = (name: string) => until('it is measured', () => read(name));

  it('are 0 for every kind if nothing does', async () => {
    const nothing = Object.fromEntries(ATTENTION_KINDS.map((kind) => [kind, 0]));
    assert.deepEqual(await measured('attention_items'), nothing);
    assert.deepEqual(await read('attention_longest_wait_seconds'), nothing);
  });

  it('count the items of each kind, and say how long the oldest has waited', async () => {
    const partner = await stack.createPartner();
    await setUrl(stack, partner, 'http://127.0.0.1:9/', 'live');
    const givenUp = await writeEvents(stack, partner, 2, 'live');
    for (const [index, minutes] of [31, 10].entries())
      await asOwner(
        stack,
        `WITH given_up AS (UPDATE delivery SET status = 'given_up' WHERE event_id = $1 RETURNING *)
         INSERT INTO delivery_attempt (event_id, endpoint_id, number, started_at, duration_ms, delivered, error)
         SELECT event_id, endpoint_id, 1, now() - interval '${minutes} minutes', 1, false, 'timeout' FROM given_up`,
        [givenUp[index]],
      );
    await asOwner(
      stack,
      `INSERT INTO adjustment_request (id, partner_id, mode, amount_cents, reason, requested_by, created_at)
       VALUES ($1, $2, 'live', 5000000, 'wire 7', 'ada', now() - interval '18 minutes')`,
      [newId('adj'), partner.id],
    );
    await asOwner(
      stack,
      `INSERT INTO network_inbox (id, network, kind, created_at)
       VALUES ('1', 'elsewhere', 'payment', now() - interval '19 minutes')`,
    );
    await asOwner(
      stack,
      `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET log_error_verbosity = ''default''', current_database()); END $$`,
    );
    const counts = Object.fromEntries(ATTENTION_KINDS.map((kind) => [kind, 0]));
    for (const kind of Object.keys(WAITED_MINUTES)) counts[kind] = kind === 'webhook' ? 2 : 1;
    await until('they are counted', async () => (await read('attention_items'))?.webhook === 2);
    assert.deepEqual(await read('attention_items'), counts);
    const waited = (await read('attention_longest_wait_seconds')) ?? {};
    for (const [kind, minutes] of Object.entries(WAITED_MINUTES)) {
      const seconds = waited[kind] ?? -1;
      assert.ok(seconds >= minutes * 60 && seconds < minutes * 60 + 59, `${kind}: ${seconds} s`);
    }
    const { json } = await operateIn(environmentOf(stack.config))('attention', 'list');
    assert.deepEqual(column(json, 'kind').sort(), [...Object.keys(WAITED_MINUTES), 'webhook'].sort());
  });

  it('count events and accounts that wait for delivery, and say how long the first has been due', async () => {
    const [one, other] = [await stack.createPartner(), await stack.createPartner()];
    for (const partner of [one, other]) await setUrl(stack, partner, 'http://127.0.0.1:9/');
    await writeEvents(stack, one, 3);
    const [due = '', late = '', unknown = ''] = await writeEvents(stack, other, 4);
    const set = (id: string, changes: string) =>
      asOwner(stack, `UPDATE delivery SET ${changes} WHERE event_id = $1`, [id]);
    await set(due, `next_attempt_at = now() - interval '10 minutes'`);
    const retrying = (workflow: string) =>
      `status = 'retrying', workflow = '${workflow}', next_attempt_at = now()`;
    await set(late, `${retrying('told')} - interval '90 seconds'`);
    await set(unknown, `${retrying('untold')} + interval '1 hour'`);
    await until('they are counted', async () => (await read('webhook_events_waiting'))?.workflow === 1);
    assert.deepEqual(await read('webhook_events_waiting'), { relay: 5, handover: 1, workflow: 1 });
    assert.deepEqual(await read('webhook_accounts_waiting'), { relay: 2, handover: 1, workflow: 1 });
    const { relay = 0, handover = 0 } = (await read('webhook_longest_wait_seconds')) ?? {};
    assert.ok(relay >= 600 && relay < 700, `${relay} s`);
    assert.ok(handover >= 90 && handover < 190, `${handover} s`);
  });
});
