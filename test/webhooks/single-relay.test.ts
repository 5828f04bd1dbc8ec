import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { pino } from 'pino';
import { newId } from '../../platform/crypto/new-id.ts';
import { createWebhookClient, type WebhookClient } from '../../webhooks/client/webhook-client.ts';
import { createEndpoint } from '../../webhooks/endpoints.ts';
import { startRelay } from '../../webhooks/relay-jobs.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { until } from '../support/until.ts';
import { accountWithEndpoint } from '../support/webhooks/accounts.ts';
import { type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

describe('a webhook relay', () => {
  let commands: TestCommands;
  let webhooks: WebhookClient;
  let relay: ReturnType<typeof startRelay>;
  const receivers: Receiver[] = [];
  before(async () => {
    commands = await openCommands();
  });
  after(() => commands.close());
  beforeEach(() => commands.owner.query('TRUNCATE delivery'));
  afterEach(async () => {
    // Ends what hangs.
    await Promise.all(receivers.splice(0).map((receiver) => receiver.stop()));
    await relay.stop();
    await webhooks.close();
  });

  let nowMs = 0;
  let errors: string[] = [];
  /** @param tookMs how long an attempt at a URL took, as its result says */
  const start = (maxInFlight: number, tookMs: (url: string) => number = () => 5) => {
    const timeoutMs = 60_000;
    errors = [];
    webhooks = createWebhookClient({ timeoutMs, allowLoopbackHttp: true });
    const deliver: WebhookClient['deliver'] = async (request) => {
      const result = await webhooks.deliver(request);
      return { ...result, durationMs: tookMs(request.url) };
    };
    relay = startRelay({
      ...{ ...commands.context, timeoutMs, maxInFlight, delaysMs: [3_600_000] },
      webhooks: { deliver, close: webhooks.close },
      now: () => nowMs,
      logger: pino({ level: 'error' }, { write: (line: string) => errors.push(line) }),
      onRetried: () => undefined,
      onParked: () => undefined,
    });
  };

  async function openReceiver(): Promise<Receiver> {
    const receiver = await startReceiver();
    receivers.push(receiver);
    return receiver;
  }

  /** An account with an endpoint; those that were made before it come first. @returns its id and its receiver */
  async function account(): Promise<[string, Receiver]> {
    const receiver = await openReceiver();
    const { partnerId } = await accountWithEndpoint(commands, { url: receiver.url });
    return [partnerId, receiver];
  }

  /** Writes events of accounts, all in one transaction. */
  const write = async (...counts: [partnerId: string, count: number][]) => {
    const partnerIds = counts.flatMap(([id, count]) => Array.from({ length: count }, () => id));
    await commands.owner.query(
      `INSERT INTO event (id, partner_id, mode, type, body, created_at)
       SELECT id, partner_id, 'test', 'ping', json_build_object('id', id), now()
       FROM unnest($1::text[], $2::text[]) e (id, partner_id)`,
      [partnerIds.map(() => newId('evt')), partnerIds],
    );
  };

  it('gives its places to all accounts in turn, however often they are all taken', async () => {
    const [first, firstReceiver] = await account();
    const [second, secondReceiver] = await account();
    const [last, lastReceiver] = await account();
    const unanswered: ServerResponse[] = [];
    for (const busy of [firstReceiver, secondReceiver])
      busy.behave((_request, response) => unanswered.push(response));
    await write([first, 20], [second, 20], [last, 1]);
    start(4);
    for (let answered = 0; answered < 8; answered++) {
      await until('all places are taken', () => unanswered.length === 4 || lastReceiver.received.length > 0);
      unanswered.shift()?.writeHead(200).end();
    }
    assert.equal(lastReceiver.received.length, 1, 'it has had its turn');
  });

  it('keeps places for endpoints that respond, however many hang', async () => {
    const hanging = [await account(), await account()] as const;
    const [responding, receiver] = await account();
    for (const [, { behave }] of hanging) behave(() => undefined);
    const [[one, oneReceiver], [another, anotherReceiver]] = hanging;
    start(16);
    await write([responding, 1]);
    await until('the endpoint that responds gets an event', () => receiver.received.length === 1);
    await write([one, 20]);
    await until('half of the places are taken', () => oneReceiver.received.length === 8);
    await write([another, 20], [responding, 1]);
    await until('it gets another one', () => receiver.received.length === 2);
    assert.equal(anotherReceiver.received.length, 0);
  });

  it('keeps places for endpoints that respond quickly, however many respond slowly', async () => {
    const slow = [await account(), await account(), await account()] as const;
    const [quick, receiver] = await account();
    const slowUrls = slow.map(([, { url }]) => url);
    start(64, (url) => (slowUrls.includes(url) ? 5_000 : 5));
    await write(...slow.map(([id]) => [id, 1] as [string, number]), [quick, 1]);
    await until('each has one success', () => isDelivered(...slow.map(([id]) => id), quick));
    for (const [, { behave }] of slow) behave(() => undefined);
    const [one, another, third] = slow;
    for (const [id, { received }] of [one, another]) {
      await write([id, 20]);
      await until('it has as many events as it has slots', () => received.length === 17);
    }
    await write([third[0], 20], [quick, 1]);
    await until('the quick one gets another event', () => receiver.received.length === 2);
    assert.equal(third[1].received.length, 1, 'half of the places are taken');
  });

  it('keeps places from endpoints that have just begun to hang, although they have free slots', async () => {
    const [[one, first], [another, second]] = [await account(), await account()] as const;
    const [responding, receiver] = await account();
    start(32);
    await write([one, 1], [another, 1], [responding, 1]);
    await until('all have responded', () => isDelivered(one, another, responding));
    for (const { behave } of [first, second]) behave(() => undefined);
    const received = () => first.received.length + second.received.length;
    await write([one, 8], [another, 8]);
    await until('half of the places are taken', () => received() === 18);
    nowMs += 2_000;
    await write([one, 8], [another, 8], [responding, 1]);
    await until('the one that responds gets another event', () => receiver.received.length === 2);
    assert.equal(received(), 18, 'they have half of the places, and not the 16 slots of each');
  });

  it('keeps places from an account all of whose endpoints begin to hang at the same moment', async () => {
    const [hanging, first] = await account();
    const second = await openReceiver();
    const author = { ...commands.context, actor: 'test' };
    await createEndpoint(author, { partnerId: hanging, mode: 'test' }, { url: second.url });
    const [responding, receiver] = await account();
    start(32);
    await write([hanging, 1], [responding, 1]);
    await until('all have responded', () => isDelivered(hanging, responding));
    for (const { behave } of [first, second]) behave(() => undefined);
    const received = () => first.received.length + second.received.length;
    await write([hanging, 8]);
    await until('half of the places are taken', () => received() === 18);
    await write([hanging, 8], [responding, 1]);
    await until('the other account gets another event', () => receiver.received.length === 2);
    assert.equal(received(), 18, 'it has half of the places, and not the 16 slots of each endpoint');
  });

  it('serves an endpoint that has never responded, although all endpoints of one account hang', async () => {
    const [hanging, first] = await account();
    const second = await openReceiver();
    const author = { ...commands.context, actor: 'test' };
    await createEndpoint(author, { partnerId: hanging, mode: 'test' }, { url: second.url });
    const [responding, receiver] = await account();
    const [unknown, unknownReceiver] = await account();
    start(32);
    await write([hanging, 1]);
    await until('both have responded', () => isDelivered(hanging));
    for (const { behave } of [first, second]) behave(() => undefined);
    const received = () => first.received.length + second.received.length;
    await write([hanging, 5]);
    await until('a third of the places is taken', () => received() === 12);
    await write([hanging, 11]);
    await write([responding, 1]);
    await until('another account gets an event', () => receiver.received.length === 1);
    nowMs += 2_000;
    await write([unknown, 1]);
    await until(
      'one that has never responded gets its first event',
      () => unknownReceiver.received.length === 1,
    );
  });

  it('keeps places from endpoints that hang, although they respond now and then', async () => {
    const [[one, first], [another, second]] = [await account(), await account()] as const;
    const [responding, receiver] = await account();
    start(32);
    await write([one, 1], [another, 1], [responding, 1]);
    await until('all have responded', () => isDelivered(one, another, responding));
    const unanswered: ServerResponse[][] = [[], []];
    [first, second].forEach(({ behave }, index) => {
      behave((_request, response) => unanswered[index]?.push(response));
    });
    await write([one, 9], [another, 9]);
    await until('more than half of the places are taken', () => unanswered.flat().length === 18);
    nowMs += 2_000;
    for (const [oldest] of unanswered) oldest?.writeHead(200).end();
    await until('that is recorded', async () => (await countDelivered()) === 5);
    await write([one, 8], [another, 8], [responding, 1]);
    await until('the one that responds gets another event', () => receiver.received.length === 2);
    assert.equal(unanswered.flat().length, 18);
  });

  async function countDelivered(): Promise<number> {
    const { rows } = await commands.owner.query("SELECT FROM delivery WHERE status = 'delivered'");
    return rows.length;
  }
  const isDelivered = async (...partnerIds: string[]) => {
    const { rows } = await commands.owner.query<{ status: string }>(
      'SELECT status FROM delivery WHERE partner_id = ANY ($1)',
      [partnerIds],
    );
    return rows.every(({ status }) => status === 'delivered');
  };

  it('records attempts again after a deadlock, and does not send the events again', async () => {
    const [partnerId, receiver] = await account();
    await commands.owner.query(
      `CREATE SEQUENCE records;
       GRANT USAGE ON SEQUENCE records TO PUBLIC;
       CREATE FUNCTION deadlock() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         IF nextval('records') = 1 THEN RAISE SQLSTATE '40P01'; END IF;
         RETURN NULL;
       END $$;
       GRANT EXECUTE ON FUNCTION deadlock TO PUBLIC;
       CREATE TRIGGER deadlock AFTER INSERT ON delivery_attempt FOR EACH STATEMENT EXECUTE FUNCTION deadlock()`,
    );
    try {
      await write([partnerId, 8]);
      start(100);
      await until('they are delivered', () => isDelivered(partnerId));
      assert.equal(receiver.received.length, 8);
    } finally {
      await commands.owner.query('DROP TRIGGER deadlock ON delivery_attempt; DROP FUNCTION deadlock');
    }
  });

  it('records the attempts of others while a row of an endpoint is locked, whose many events fill no places', async () => {
    const [locked] = await account();
    const [other] = await account();
    start(30);
    await write([locked, 1], [other, 1]);
    await until('both have responded', () => isDelivered(locked, other));
    await using holder = await commands.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT FROM webhook_endpoint WHERE partner_id = $1 FOR UPDATE', [locked]);
    await write([locked, 60], [other, 30]);
    await until('those of the other are delivered', () => isDelivered(other));
    assert.deepEqual(errors, [], 'before the record of the locked one was given up');
    await holder.query('ROLLBACK');
    await until('the others are delivered', () => isDelivered(locked));
  });

  it('reads events again that it could not read when it had leased them', async () => {
    const [partnerId] = await account();
    await write([partnerId, 1]);
    await using holder = await commands.connect();
    await holder.query('BEGIN');
    await holder.query('LOCK TABLE event');
    start(100);
    await until('its read was ended', async () => {
      const { rows } = await commands.owner.query(
        `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
         AND wait_event_type = 'Lock' AND query LIKE 'select%from "event"%'`,
      );
      return rows.length > 0;
    });
    await holder.query('COMMIT');
    await until('the event is delivered', () => isDelivered(partnerId));
  });
});
