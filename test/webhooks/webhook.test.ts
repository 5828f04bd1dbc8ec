import assert from 'node:assert/strict';
import { freePort } from '../../dev/free-port.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { post } from '../support/api/post.ts';
import { column } from '../support/column.ts';
import { assertAudited } from '../support/operator/audited.ts';
import { environmentOf, lastAudit, type Operate, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import {
  countByStatus,
  endpointOf,
  type SeededEvent,
  seedEvents,
  workflowIdOf,
} from '../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

describe('operator webhook', () => {
  let stack: TestStack;
  let operate: Operate;
  let partner: TestPartner;
  let receiver: Receiver;

  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
    receiver = await startReceiver();
  });
  afterEach(() => receiver.stop());

  const setEndpoint = () => operate('webhook-endpoint', 'set', partner.id, '--url', receiver.url);
  const seed = (...events: SeededEvent[]) => seedEvents(stack, partner, events);
  const show = async (id: string) => (await operate('webhook', 'show', id)).json;
  const settled = (id: string, status: string) =>
    until(`${id} is ${status}`, async () => (await show(id)).status === status);
  const requeue = (...args: string[]) => operate('webhook', 'requeue', ...args);
  const attentionTo = async (id: string) =>
    (await operate('attention', 'list')).json.filter((item: { id: string }) => item.id === id);

  /** An event that the receiver refused, and that is sent again in half a minute. */
  async function refusedOnce(): Promise<string> {
    receiver.behave((_request, response) => response.writeHead(500).end('<h1>out of order</h1>'));
    await setEndpoint();
    const { json } = await partner.call('POST', '/webhook-endpoint/test');
    await until('the first attempt is recorded, and its workflow waits', async () => {
      const { status, workflow_status } = await show(json.id);
      return status === 'retrying' && workflow_status === 'running';
    });
    receiver.behave(answer(200));
    return json.id;
  }

  it("shows an attempt with its answer, the event's destination and its workflow, and sends it at once if requeued", async () => {
    const id = await refusedOnce();
    const { attempts, created, next_attempt_at, ...rest } = await show(id);
    const endpointId = await endpointOf(stack, id);
    assert.deepEqual(rest, {
      id,
      endpoint_id: endpointId,
      object: 'event',
      partner_id: partner.id,
      partner_name: 'Test Partner',
      mode: 'test',
      type: 'ping',
      status: 'retrying',
      attempt_count: 1,
      last_error: attempts[0].error,
      endpoint: { url: receiver.url, status: 'enabled' },
      deliveries: [{ endpoint_id: endpointId, status: 'retrying', attempt_count: 1 }],
      workflow_id: await workflowIdOf(stack, id),
      workflow_status: 'running',
    });
    assert.ok(next_attempt_at > created);
    const [{ number, status, http_status, answer_start }, ...more] = attempts;
    assert.deepEqual(
      [number, status, http_status, answer_start, more],
      [1, 'failed', 500, '<h1>out of order</h1>', []],
    );
    assert.equal((await requeue(id)).code, 0);
    await settled(id, 'delivered');
    assert.equal(receiver.received.length, 2);
    assert.equal(new Set(receiver.received.map(({ body }) => body)).size, 1);
  });

  it('lists endpoints in attention list whose live events wait until they are enabled, and none of test mode', async () => {
    receiver.behave(answer(410));
    await setEndpoint();
    for (const mode of ['test', 'live'] as const) {
      const { json } = await partner.call('POST', '/webhook-endpoint/test', { mode });
      await settled(json.id, 'parked');
    }
    const [item, ...others] = await attentionTo(partner.id);
    assert.deepEqual(others, []);
    const { id } = (await operate('webhook-endpoint', 'show', partner.id, '--mode', 'live')).json;
    const { kind, mode, partner_name, command, reason } = item;
    assert.deepEqual([kind, mode, partner_name], ['webhook_endpoint', 'live', 'Test Partner']);
    const enable = `npm run operator -- webhook-endpoint enable ${partner.id} --mode live --endpoint ${id}`;
    assert.equal(command, enable);
    assert.match(reason, /^one event waits for the endpoint we_\w+, which is disabled: it answered 410 Gone/);
    receiver.behave(answer(200));
    const words = item.command.split(' -- ')[1].split(' ');
    assert.equal((await operate(...words)).code, 0);
    assert.deepEqual(await attentionTo(partner.id), []);
  });

  it('has an event that was given up in attention list, until it is requeued, which is audited', async () => {
    await setEndpoint();
    const [id = '', ofTestMode = ''] = await seed(
      { status: 'given_up', mode: 'live' },
      { status: 'given_up' },
    );
    assert.deepEqual(await attentionTo(ofTestMode), []);
    const [item] = await attentionTo(id);
    const { since, reason, ...rest } = item;
    assert.equal(since, new Date(since).toISOString());
    assert.deepEqual(rest, {
      kind: 'webhook',
      id,
      mode: 'live',
      partner_id: partner.id,
      partner_name: 'Test Partner',
      command: `npm run operator -- webhook requeue ${id} --endpoint ${await endpointOf(stack, id)}`,
      or_command: null,
      workflow_id: await workflowIdOf(stack, id),
    });
    assert.match(reason, /given up/);
    assert.equal((await requeue(id)).code, 0);
    const endpoints = [await endpointOf(stack, id)];
    await assertAudited(operate, 'webhook.requeue', id, { status: 'given_up', endpoints });
    await settled(id, 'delivered');
    assert.equal(receiver.received.length, 1);
    assert.deepEqual(await attentionTo(id), []);
  });

  it('shows the attempts at the endpoint that --endpoint names, and sends the event there alone', async () => {
    await using oldest = await startReceiver();
    const first = (await post(partner, '/webhook-endpoints', { url: oldest.url })).id;
    const second = (await post(partner, '/webhook-endpoints', { url: receiver.url })).id;
    const [id = ''] = await seed({ status: 'given_up' });
    const { json } = await requeue(id, '--endpoint', second);
    assert.equal(json.endpoint_id, second);
    await until('it arrives', async () => receiver.received.length === 1);
    const shown = (await operate('webhook', 'show', id, '--endpoint', second)).json;
    assert.deepEqual([shown.endpoint_id, shown.endpoint.url], [second, receiver.url]);
    const other = (await operate('webhook', 'show', id, '--endpoint', first)).json;
    assert.deepEqual([other.endpoint_id, other.status, other.attempts], [first, 'given_up', []]);
    assert.deepEqual((await show(id)).endpoint_id, first, 'the oldest by default');
    const unknown = await operate('webhook', 'show', id, '--endpoint', 'we_x');
    assert.equal(unknown.code, 1);
    assert.match(unknown.err, /has no delivery to we_x/);
    const all = ['--partner', partner.id, '--endpoint', second, '--status', 'given_up', '--yes'];
    const ofOther = (await requeue(...all)).json.requeued;
    assert.equal(ofOther, 0, 'what was given up at the other is not sent to this one');
    assert.equal(oldest.received.length, 0);
  });

  it('refuses to requeue if there is no endpoint, and says what to do', async () => {
    const [id = ''] = await seed({ status: 'given_up' });
    const without = await requeue(id);
    assert.deepEqual([without.code, without.out], [1, '']);
    assert.match(without.err, /operator webhook-endpoint set prt_\w+ --url U --mode test/);
    await setEndpoint();
    await operate('webhook-endpoint', 'disable', partner.id);
    const disabled = await requeue(id);
    assert.equal(disabled.code, 1);
    assert.match(disabled.err, /operator webhook-endpoint enable prt_\w+ --mode test/);
    assert.equal((await show(id)).status, 'given_up');
    const { action } = (await lastAudit(operate)) as { action: string };
    assert.equal(action, 'webhook-endpoint.disable');
  });

  it('requeues without Temporal, and shows all but the workflow', async () => {
    await setEndpoint();
    const [id = ''] = await seed({ status: 'given_up' });
    const address = `127.0.0.1:${await freePort()}`;
    const cut = operateIn({ ...environmentOf(stack.config), TEMPORAL_ADDRESS: address });
    assert.equal((await cut('webhook', 'requeue', id)).code, 0);
    await settled(id, 'delivered');
    const shown = await cut('webhook', 'show', id);
    assert.deepEqual([shown.code, shown.json.status, shown.json.workflow_status], [0, 'delivered', null]);
  });

  describe('in bulk', () => {
    const bulk = (...flags: string[]) => requeue('--partner', partner.id, ...flags);

    it('prints the count and does nothing if there is no terminal to ask at', async () => {
      await setEndpoint();
      const ids = await seed({ status: 'given_up' }, { status: 'given_up' }, { status: 'given_up' }, {});
      const { code, out, err } = await bulk();
      assert.deepEqual([code, out], [1, '']);
      assert.match(err, /3 events of prt_\w+ \(3 given_up\) again\. Nothing was done: add --yes/);
      assert.equal((await show(ids[0] as string)).status, 'given_up');
      assert.equal(receiver.received.length, 0);
    });

    it('asks the person at the terminal', async () => {
      await setEndpoint();
      const [id = ''] = await seed({ status: 'given_up' });
      const asked: string[] = [];
      let agreed = false;
      const asking = operateIn(environmentOf(stack.config), 15_000, async (question) => {
        asked.push(question);
        return agreed;
      });
      const refused = await asking('webhook', 'requeue', '--partner', partner.id);
      assert.deepEqual([refused.code, refused.err], [1, 'Nothing was done.\n']);
      agreed = true;
      const done = await asking('webhook', 'requeue', '--partner', partner.id);
      assert.deepEqual([done.code, done.json.requeued], [0, 1]);
      assert.match(asked[0] ?? '', /^Send 1 event of prt_\w+ \(1 given_up\) again\?$/);
      await settled(id, 'delivered');
    });

    it('sends all given-up events once each with --yes, shows its progress, and is audited', async () => {
      await setEndpoint();
      const wanted = await seed(...Array.from({ length: 45 }, () => ({ status: 'given_up' }) as const));
      await seed({ status: 'no_endpoint' }, { status: 'delivered' });
      const other = await stack.createPartner();
      const [others = ''] = await seedEvents(stack, other, [{ status: 'given_up' }]);
      const { code, json, err } = await bulk('--yes');
      assert.deepEqual(
        [code, json],
        [0, { partner_id: partner.id, requeued: 45, by_status: { given_up: 45 } }],
      );
      assert.match(err, /requeued 45 of 45\n$/);
      const asked = { since: null, endpoint: null, statuses: ['given_up', 'parked'], count: 45 };
      await assertAudited(operate, 'webhook.requeue', partner.id, asked);
      await until('all arrive', async () => receiver.received.length === 45);
      await until('all are delivered', async () => (await countByStatus(stack, partner)).delivered === 46);
      assert.deepEqual(receiver.received.map(({ id }) => id).sort(), wanted.sort());
      assert.equal((await show(others)).status, 'given_up');
      const again = await bulk();
      assert.deepEqual([again.code, again.json], [0, { partner_id: partner.id, requeued: 0, by_status: {} }]);
    });

    it('filters by --since and --status', async () => {
      await setEndpoint();
      const [young = '', old = '', unsent = ''] = await seed(
        { status: 'given_up', ageMs: 60_000 },
        { status: 'given_up', ageMs: 2 * 3_600_000 },
        { status: 'no_endpoint', ageMs: 60_000 },
      );
      assert.equal((await bulk('--since', '1h', '--yes')).json.requeued, 1);
      await settled(young, 'delivered');
      assert.deepEqual((await bulk('--status', 'no_endpoint', '--yes')).json.by_status, { no_endpoint: 1 });
      await settled(unsent, 'delivered');
      assert.equal((await show(old)).status, 'given_up');
      assert.equal(receiver.received.length, 2);
    });

    it('skips events without an enabled endpoint, and says so', async () => {
      await operate('webhook-endpoint', 'set', partner.id, '--url', receiver.url, '--mode', 'test');
      const [live = ''] = await seed({ status: 'given_up', mode: 'live' }, { status: 'given_up' });
      const { json, err } = await bulk('--yes');
      assert.equal(json.requeued, 1);
      assert.match(err, /^1 more have no enabled endpoint: see "operator webhook-endpoint show prt_/);
      assert.equal((await show(live)).status, 'given_up');
    });

    it('sends news of an endpoint to the others alone, and a ping nowhere else', async () => {
      const { id: first } = await post(partner, '/webhook-endpoints', { url: receiver.url });
      const path = `/webhook-endpoints/${first}`;
      await partner.call('PATCH', path, { body: { status: 'disabled' } });
      await partner.call('PATCH', path, { body: { status: 'enabled' } });
      const [news] = (await partner.call('GET', '/events?type=webhook_endpoint.disabled')).json.data;
      assert.equal(news.delivery.status, 'no_endpoint');
      await asOwner(
        stack,
        `INSERT INTO event (id, partner_id, mode, type, body, created_at, only_endpoint_id)
         VALUES ($1, $2, 'test', 'ping', '{}', now(), 'we_gone')`,
        [newId('evt'), partner.id],
      );
      const none = await bulk('--status', 'no_endpoint', '--yes');
      assert.equal(none.json.requeued, 0);
      assert.match(none.err, /^2 more have no enabled endpoint/);
      await using other = await startReceiver();
      await partner.call('POST', '/webhook-endpoints', { body: { url: other.url } });
      assert.equal((await bulk('--status', 'no_endpoint', '--yes')).json.requeued, 1);
      await until('it arrives', async () => other.received.length === 1);
      assert.equal(other.received[0]?.id, news.id);
      assert.equal(receiver.received.length, 0);
    });

    it('sends what no endpoint wanted to each one that wants it now, at the edge of a page as well', async () => {
      const events = Array.from({ length: 301 }, (_, i): SeededEvent => {
        const type = i === 0 ? 'card.blocked' : 'card.issued';
        return { type, status: 'no_endpoint', ageMs: (400 - i) * 1_000 };
      });
      await seed(...events);
      await using issued = await startReceiver();
      await post(partner, '/webhook-endpoints', { url: receiver.url });
      await post(partner, '/webhook-endpoints', { url: issued.url, event_types: ['card.issued'] });
      assert.equal((await bulk('--status', 'no_endpoint', '--yes')).json.requeued, 601);
      const rows = await asOwner(
        stack,
        `SELECT count(*)::int AS count FROM delivery WHERE partner_id = $1 AND endpoint_id <> ''
         GROUP BY endpoint_id ORDER BY endpoint_id`,
        [partner.id],
      );
      assert.deepEqual(rows, [{ count: 301 }, { count: 300 }]);
    });
  });

  it("lists an endpoint's events, however many newer ones went to the others", async () => {
    await setEndpoint();
    await seed(...Array.from({ length: 20 }, (_, i) => ({ ageMs: i + 1 })));
    const { id: endpoint } = await post(partner, '/webhook-endpoints', { url: 'https://hooks.example.com/' });
    const events = await seed(...[1, 2, 3].map((hours) => ({ ageMs: hours * 3_600_000 })));
    const list = async (...flags: string[]) => {
      const { json, err } = await operate('webhook', 'list', '--endpoint', endpoint, ...flags);
      for (const { endpoint_id } of json) assert.equal(endpoint_id, endpoint);
      return { ids: column(json, 'id'), err };
    };
    assert.deepEqual((await list('--partner', partner.id)).ids, events);
    assert.deepEqual((await list()).ids, events);
    const { ids, err } = await list('--limit', '2');
    assert.deepEqual(ids, events.slice(0, 2));
    assert.match(err, /more than 2/);
  });

  it('prints no content of an event and no secret', async () => {
    const { secret } = (await setEndpoint()).json;
    const id = newId('evt');
    await asOwner(
      stack,
      `INSERT INTO event (id, partner_id, mode, type, body, created_at) VALUES ($1, $2, 'test', 'ping', '{"email":"zq@example.com"}', now())`,
      [id, partner.id],
    );
    for (const args of [
      ['show', id],
      ['list', '--partner', partner.id],
    ]) {
      const { out, err } = await operate('webhook', ...args);
      assert.ok(out.includes(id));
      assert.ok(!`${out}${err}`.includes('zq@example.com') && !`${out}${err}`.includes(secret));
    }
  });
});
