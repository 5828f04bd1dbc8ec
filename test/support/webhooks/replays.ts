import assert from 'node:assert/strict';
import { newId } from '../../../platform/crypto/new-id.ts';
import { asOwner } from '../postgres.ts';
import { sharedStack } from '../shared-stack.ts';
import type { TestPartner, TestStack } from '../stack.ts';
import { until } from '../until.ts';
import { type SeededEvent, seedEvents } from './events.ts';
import { type Receiver, startReceiver } from './receiver.ts';

export const HOUR_MS = 3_600_000;
export const LONG_AGO = new Date(Date.now() - 40 * 24 * HOUR_MS).toISOString();

/** What asks for replays of endpoints, and looks at them, for the suite that calls this: each case has an account of its own. */
export function startReplays() {
  let stack: TestStack;
  let partner: TestPartner;
  const receivers: Receiver[] = [];
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
  });
  afterEach(async () => {
    for (const receiver of receivers.splice(0)) await receiver.stop();
  });

  /** An endpoint of the account, and what receives its events. */
  async function endpoint(body: object = {}): Promise<{ id: string; receiver: Receiver }> {
    const receiver = await startReceiver();
    receivers.push(receiver);
    const { status, json, text } = await partner.call('POST', '/webhook-endpoints', {
      body: { url: receiver.url, ...body },
    });
    assert.equal(status, 201, text);
    return { id: json.id, receiver };
  }
  const seed = (events: SeededEvent[]) => seedEvents(stack, partner, events);
  /** Events from before the account had an endpoint, the first of which is the oldest. */
  const seedEarlier = (count: number) =>
    seed(Array.from({ length: count }, (_, i) => ({ ageMs: (count - i) * 1_000, status: 'no_endpoint' })));
  const ask = (id: string, body: object) => partner.call('POST', `/webhook-endpoints/${id}/replay`, { body });
  const read = async (endpointId: string, id: string) =>
    (await partner.call('GET', `/webhook-endpoints/${endpointId}/replays/${id}`)).json;
  async function replay(id: string, body: object = {}) {
    const { status, json, text } = await ask(id, { created_gte: LONG_AGO, ...body });
    assert.equal(status, 202, text);
    return json;
  }
  const completed = (endpointId: string, id: string) =>
    until('the replay is completed', async () => {
      const shown = await read(endpointId, id);
      return shown.status === 'completed' && shown;
    });
  const ids = ({ received }: Receiver) => received.map(({ id }) => id);
  const statusAt = async (eventId: string, endpointId: string) =>
    (await partner.call('GET', `/events/${eventId}`)).json.deliveries.find(
      (delivery: { endpoint_id: string }) => delivery.endpoint_id === endpointId,
    )?.status;

  /** A replay of all that the endpoint was not sent, as if it had begun long ago. @returns its id */
  async function insertReplay(endpointId: string, dueAt = 'now()'): Promise<string> {
    const id = newId('rpl');
    await asOwner(
      stack,
      `INSERT INTO webhook_replay (id, partner_id, mode, endpoint_id, status, wanted, after_event_id, before_event_id, matched,
         due_at, created_at)
       VALUES ($1, $2, 'test', $3, 'running', 'undelivered', 'evt_', 'evt_' || id_time(now()), 0, ${dueAt}, now())`,
      [id, partner.id, endpointId],
    );
    return id;
  }
  /** A replay of another account. @throws Error if it is not completed */
  async function replayOfAnother(): Promise<void> {
    const own = partner;
    partner = await stack.createPartner();
    await seedEarlier(3);
    const { id, receiver } = await endpoint();
    await completed(id, (await replay(id)).id);
    assert.equal(receiver.received.length, 3);
    partner = own;
  }

  return {
    get stack() {
      return stack;
    },
    get partner() {
      return partner;
    },
    receivers,
    endpoint,
    seed,
    seedEarlier,
    ask,
    read,
    replay,
    completed,
    ids,
    statusAt,
    insertReplay,
    replayOfAnother,
  };
}
