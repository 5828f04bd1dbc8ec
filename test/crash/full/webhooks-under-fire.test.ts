import assert from 'node:assert/strict';
import { createPartner } from '../../../accounts/partners.ts';
import type { Child } from '../../../dev/process/child.ts';
import { KeyRing } from '../../../platform/crypto/key-ring.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import { type Orm, openOrm } from '../../../platform/db/orm.ts';
import { query } from '../../../platform/db/sql.ts';
import { sealEndpointSecret } from '../../../webhooks/secrets.ts';
import { kill, scratchFolder, startProcess } from '../../support/crash/processes.ts';
import { type OwnPostgres, openOperatorOrm, startOwnPostgres } from '../../support/postgres.ts';
import { testConfig } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { SECRET } from '../../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

const EVENTS = 1_000;
const BATCH = 50;
/** Somebody is killed each time that this many more attempts have come. */
const KILLED_EVERY = 80;
/** Not more is written ahead of what has come. */
const AHEAD = 200;
/** Every so many events fail at their first attempt, and are their workflows' to send. */
const FAILS_FIRST = 40;

describe('the webhook relay, while workers and PostgreSQL are killed -9,', () => {
  let postgres: OwnPostgres;
  let receiver: Receiver;
  let orm: Orm;
  const workers: Child[] = [];
  const supervised: Promise<void>[] = [];
  let isOver = false;
  const folder = scratchFolder();
  after(async () => {
    isOver = true;
    await Promise.all(workers.map(kill));
    await Promise.all(supervised);
    await orm.close();
    await receiver.stop();
    await postgres.close();
  });

  it(`loses none of ${EVENTS} events, and sends each with the same bytes and id`, async () => {
    postgres = await startOwnPostgres();
    receiver = await startReceiver();
    const { databaseUrl } = postgres;
    const config = await testConfig({
      databaseUrl,
      webhookDelaysMs: Array(20).fill(1_000),
      webhookTimeoutMs: 1_000,
    });
    orm = await openOrm({ databaseUrl, poolSize: 2 });
    const partnerId = await createReceiverFor(receiver, new KeyRing(config.encryptionKeys));
    // A worker that starts while PostgreSQL is away ends, and its supervisor starts another.
    const supervise = async (index: number) => {
      while (!isOver) {
        const worker = await startProcess(config, folder, 'worker/main.ts');
        workers[index] = worker;
        if (isOver) await kill(worker);
        await worker.exited;
      }
    };
    supervised.push(supervise(0), supervise(1));

    const bodies = new Map<string, string>();
    const failing = new Set<string>();
    receiver.behave((request, response) => {
      const isFirst = failing.delete(request.id);
      answer(isFirst ? 500 : 200)(request, response, 0);
    });

    const victims = [...Array(3).keys()].flatMap(() => ['one worker', 'PostgreSQL', 'the other worker']);
    const killing = (async () => {
      for (const [index, victim] of victims.entries()) {
        const attempts = KILLED_EVERY * (index + 1);
        await until(`${attempts} attempts have come`, () => receiver.received.length >= attempts);
        if (victim === 'PostgreSQL') await postgres.crash();
        else await kill(workers[victim === 'one worker' ? 0 : 1] as Child);
      }
    })();
    for (let written = 0; written < EVENTS; written += BATCH) {
      const batch = Array.from({ length: BATCH }, () => {
        const id = newId('evt');
        return {
          id,
          body: JSON.stringify({ id, type: 'ping', created: '', mode: 'test', data: { written } }),
        };
      });
      for (const [index, { id, body }] of batch.entries()) {
        bodies.set(id, body);
        if (index % FAILS_FIRST === 0) failing.add(id);
      }
      await write(partnerId, batch);
      await until('others have come', () => written <= receiver.received.length + AHEAD);
    }
    await killing;

    await until('every event is received', async () => {
      const seen = new Set(receiver.received.map(({ id }) => id));
      return seen.size === EVENTS && failing.size === 0;
    });
    // A busy machine can make the endpoint look as if it were failing, of which there is an event, too.
    await until('every event is known to be delivered', async () => {
      const [row] = await query<{ open: number }>(
        orm.em.fork(),
        `SELECT count(*)::int AS open FROM delivery WHERE type = 'ping' AND status <> 'delivered'`,
      );
      return row?.open === 0;
    });
    for (const { id, body, headers } of receiver.received) {
      assert.equal(body, bodies.get(id));
      assert.equal(headers['x-service-event-id'], id);
    }
    console.log(`      ${receiver.received.length - EVENTS} attempts more than events`);
  });

  async function createReceiverFor({ url }: Receiver, ring: KeyRing): Promise<string> {
    const operatorOrm = await openOperatorOrm(postgres.databaseUrl);
    const partner = { name: 'Fire', secureDetailsEnabled: false };
    const { id } = await createPartner({ orm: operatorOrm, actor: 'test' }, partner);
    await operatorOrm.close();
    const endpointId = newId('we');
    await query(
      orm.em.fork(),
      `INSERT INTO webhook_endpoint (id, partner_id, mode, url, secret) VALUES ($1, $2, 'test', $3, $4)`,
      [endpointId, id, url, sealEndpointSecret(ring, endpointId, SECRET)],
    );
    return id;
  }

  /** Until it is committed: a server that is killed may have committed what it did not say. */
  async function write(partnerId: string, events: { id: string; body: string }[]): Promise<void> {
    const ids = events.map(({ id }) => id);
    const bodies = events.map(({ body }) => body);
    await until('the events are committed', () =>
      query(
        orm.em.fork(),
        `INSERT INTO event (id, partner_id, mode, type, body, created_at)
         SELECT e.id, $1, 'test', 'ping', e.body, now() FROM unnest($2::text[], $3::text[]) e (id, body)
         ON CONFLICT DO NOTHING`,
        [partnerId, ids, bodies],
      ).then(
        () => true,
        () => false,
      ),
    );
  }
});
