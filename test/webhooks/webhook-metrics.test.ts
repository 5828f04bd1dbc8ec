import assert from 'node:assert/strict';
import { readMetrics } from '../support/metrics.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { setUrl, writeEvents } from '../support/webhooks/events.ts';

describe('GET /metrics', () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack({}, { worker: false });
  });
  after(() => stack.stop());

  async function read(): Promise<Record<string, number>> {
    const text = await readMetrics(stack);
    const samples = [...text.matchAll(/^webhook_(\w+)\{for="(\w+)"\} (\S+)$/gm)];
    return Object.fromEntries(samples.map(([, name, what, value]) => [`${name} ${what}`, Number(value)]));
  }

  it('counts events and accounts that wait for delivery, and says how long the first has been due', async () => {
    const [one, other] = [await stack.createPartner(), await stack.createPartner()];
    for (const partner of [one, other]) await setUrl(stack, partner, 'http://127.0.0.1:9/');
    await writeEvents(stack, one, 3);
    const [due = '', late = '', unknown = ''] = await writeEvents(stack, other, 4);
    const set = (id: string, changes: string) =>
      asOwner(stack, `UPDATE delivery SET ${changes} WHERE event_id = $1`, [id]);
    await set(due, `next_attempt_at = now() - interval '10 minutes'`);
    await set(
      late,
      `status = 'retrying', workflow = 'told', next_attempt_at = now() - interval '90 seconds'`,
    );
    await set(
      unknown,
      `status = 'retrying', workflow = 'untold', next_attempt_at = now() + interval '1 hour'`,
    );
    await until('it is counted', async () => {
      const waiting = await read();
      return waiting['events_waiting workflow'] === 1 && waiting;
    });
    const waiting = await read();
    const counts = Object.entries(waiting).filter(([name]) => !name.startsWith('longest'));
    assert.deepEqual(Object.fromEntries(counts), {
      ...{ 'events_waiting relay': 5, 'events_waiting handover': 1, 'events_waiting workflow': 1 },
      ...{ 'accounts_waiting relay': 2, 'accounts_waiting handover': 1, 'accounts_waiting workflow': 1 },
    });
    const relaySeconds = waiting['longest_wait_seconds relay'] ?? 0;
    assert.ok(relaySeconds >= 600 && relaySeconds < 700, `${relaySeconds} s`);
    const handoverSeconds = waiting['longest_wait_seconds handover'] ?? 0;
    assert.ok(handoverSeconds >= 90 && handoverSeconds < 190, `${handoverSeconds} s`);
  });
});
