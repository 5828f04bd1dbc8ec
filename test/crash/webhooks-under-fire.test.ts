import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPartner } from '../../commands/accounts/partners.ts';
import { KeyRing } from '../../crypto/key-ring.ts';
import { newId } from '../../crypto/new-id.ts';
import { sealEndpointSecret } from '../../crypto/webhooks.ts';
import { type Orm, openOrm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import type { Child } from '../../dev/process/child.ts';
import { kill, scratchFolder, startProcess } from '../support/crash/processes.ts';
import { type OwnPostgres, openOperatorOrm, startOwnPostgres } from '../support/postgres.ts';
import { testConfig } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { SECRET } from '../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

const EVENTS = 2_000;
const BATCH = 50;
/** Every so many events fail at their first attempt, and are their workflows' to send. */
const FAILS_FIRST = 40;

describe('the webhook relay, while workers and PostgreSQL are killed -9,', function () {
  this.timeout(240_000);
  let postgres: OwnPostgres;
  let receiver: Receiver;
  let orm: Orm;
  const workers: Child[] = [];
  const folder = scratchFolder();
  after(async () => {
    await Promise.all(workers.map(kill));
    await orm.close();
    await receiver.stop();
    await postgres.close();
    rmSync(folder, { recursive: true });
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
    const startWorker = () => startProcess(config, folder, 'worker/main.ts');
    workers.push(await startWorker(), await startWorker());

    const bodies = new Map<string, string>();
    const failing = new Set<string>();
    receiver.behave((request, response) => {
      const isFirst = failing.delete(request.id);
      answer(isFirst ? 500 : 200)(request, response, 0);
    });

    const victims = [...Array(3).keys()].flatMap(() => ['one worker', 'PostgreSQL', 'the other worker']);
    const killing = (async () => {
      for (const victim of victims) {
        await sleep(500 + Math.random() * 1_000);
        if (victim === 'PostgreSQL') await postgres.crash();
        else {
          const index = victim === 'one worker' ? 0 : 1;
          await kill(workers[index] as Child);
          workers[index] = await startWorker();
        }
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
      await sleep(200);
    }
    await killing;

    await until('every event is received', async () => {
      const seen = new Set(receiver.received.map(({ id }) => id));
      return seen.size === EVENTS && failing.size === 0;
    });
    await until('every event is known to be delivered', async () => {
      const [row] = await query<{ open: number }>(
        orm.em.fork(),
        `SELECT count(*)::int AS open FROM delivery WHERE status <> 'delivered'`,
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
    await query(
      orm.em.fork(),
      `INSERT INTO webhook_endpoint (partner_id, mode, url, secret) VALUES ($1, 'test', $2, $3)`,
      [id, url, sealEndpointSecret(ring, { partner_id: id, mode: 'test' }, SECRET)],
    );
    return id;
  }

  /** Until it is committed: a server that is killed may have committed what it did not say. */
  async function write(partnerId: string, events: { id: string; body: string }[]): Promise<void> {
    for (;;) {
      try {
        await query(
          orm.em.fork(),
          `INSERT INTO event (id, partner_id, mode, type, body, created_at)
           SELECT e.id, $1, 'test', 'ping', e.body, now() FROM unnest($2::text[], $3::text[]) e (id, body)
           ON CONFLICT DO NOTHING`,
          [partnerId, events.map(({ id }) => id), events.map(({ body }) => body)],
        );
        return;
      } catch (error) {
        console.log(`      a commit was lost (${(error as Error).name}) and is tried again`);
        await sleep(100);
      }
    }
  }
});
