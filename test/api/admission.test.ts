import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { pino } from 'pino';
import { Pool } from 'undici';
import { createApiKey } from '../../accounts/api-keys.ts';
import { shareActiveAccounts } from '../../accounts/usage.ts';
import { startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import { apiKeyHasher, generateApiKey } from '../../platform/crypto/api-key.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { untilAnswered } from '../support/crash/operations.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../support/money.ts';
import { asOwner, connectTo, ownerUrlOf } from '../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe('the API, under more requests than it admits,', () => {
  let stack: TestStack;
  before(async () => {
    // As long as requests are to be at work on a busy machine.
    stack = await startTestStack({ cardCreationWaitMs: 120_000 }, { worker: false });
  });
  after(() => stack.stop());

  /** Waits until so many requests of all accounts are at work, and so many wait. */
  function untilAdmitted(atWork: number, waiting: number): Promise<boolean> {
    const { host, port } = stack.config;
    return until(`${atWork} are at work and ${waiting} wait`, async () => {
      const text = await (await fetch(`http://${host}:${port}/metrics`)).text();
      const numberOf = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
      const values = [numberOf('admission_requests_at_work'), numberOf('admission_requests_waiting')];
      return values[0] === atWork && values[1] === waiting;
    });
  }

  it('answers 240 simultaneous issuances of one account without a 500, and the money adds up', async () => {
    const partner = await fundedPartner(stack, 30 * 1_150);
    const issue = async () => {
      const card = { amount: 1_000, external_ref: randomUUID() };
      const options = { idempotencyKey: randomUUID() };
      // A 503 does not say whether there is a card; the same request does, once it gets through.
      const { status, headers, text } = await untilAnswered(() => createCard(partner, card, options));
      assert.ok([201, 402, 429].includes(status), text);
      if (status === 429) assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/);
      return status;
    };
    const statuses = await Promise.all(Array.from({ length: 240 }, issue));
    const issued = statuses.filter((status) => status === 201).length;
    assert.ok(issued >= 16, `${issued} were issued`);
    const left = (30 - issued) * 1_150;
    assert.deepEqual(await balanceOf(partner), [left, 0, left]);
    await assertLedgerClean(stack, partner);
  });

  it('queues 200 beside 16 at work, whatever their API key, drops those who hang up, and answers the next with 429', async () => {
    const live = { mode: 'live' } as const;
    const [partner, other] = [await fundedPartner(stack, 100_000), await fundedPartner(stack, 100_000)];
    const { key } = await createApiKey(stack.operator, { ...live, partnerId: partner.id, name: null });
    const headers = { authorization: `Bearer ${key}` };
    // Without a worker live issuances wait for the first answer of their workflows.
    const atWork = Promise.all(
      Array.from({ length: 16 }, () => createCard(partner, { amount: 1_000 }, live)),
    );
    await untilAdmitted(16, 0);

    const hangUp = new AbortController();
    const gone = fetch(`http://${stack.config.host}:${stack.config.port}/v1/cards`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': 'gone' },
      body: '{"amount":1000,"external_ref":"nobody-waits"}',
      signal: hangUp.signal,
    });
    await untilAdmitted(16, 1);
    hangUp.abort();
    await assert.rejects(gone);
    await untilAdmitted(16, 0);

    const queued = Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        partner.call('GET', '/balance', i % 2 === 0 ? { headers } : live),
      ),
    );
    await untilAdmitted(16, 200);
    for (const options of [live, { headers }]) {
      const refused = await partner.call('GET', '/balance', options);
      expectError(refused, 'rate_limited');
      assert.match(
        refused.json.error.message,
        /already has 16 requests in progress in this mode, and 200 more/,
      );
      assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    }
    assert.equal((await partner.call('GET', '/balance', { mode: 'test' })).status, 200);
    assert.equal((await other.call('GET', '/balance', live)).status, 200);
    await untilAdmitted(16, 200);
    await stack.startWorker();
    await atWork;
    assert.ok((await queued).every(({ status }) => status === 200));
    const claims = `SELECT FROM idempotency_claim WHERE partner_id = $1 AND key = 'gone'`;
    assert.deepEqual(await asOwner(stack, claims, [partner.id]), []);
    await stack.stopWorker();
  });

  it('gives no place to a request whose body is still arriving, so that it delays no other request of its account', async () => {
    const partner = await fundedPartner(stack, 1_000);
    const { host, port } = stack.config;
    const sockets: Socket[] = [];
    try {
      for (let i = 0; i < 20; i++) {
        const socket = connect(port, host);
        sockets.push(socket);
        await once(socket, 'connect');
        // Expect: 100-continue is how it tells that the request has begun to be read.
        socket.write(
          `POST /v1/test/credit HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${partner.keys.test}\r\n` +
            `Idempotency-Key: ${i}\r\nContent-Type: application/json\r\nContent-Length: 14\r\n` +
            'Expect: 100-continue\r\n\r\n{"am',
        );
        await once(socket, 'data');
      }
      assert.deepEqual(await balanceOf(partner), [1_000, 0, 1_000]);
      await untilAdmitted(0, 0);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  /** 217 keys that were genuine when the process first saw them, and were revoked afterwards. */
  const revokedKeys = async (partner: TestPartner, ask: (key: string) => Promise<number>) => {
    const keys = Array.from({ length: 217 }, () => generateApiKey('test'));
    const hash = apiKeyHasher(stack.operator.ring);
    await asOwner(
      stack,
      `INSERT INTO api_key (id, partner_id, mode, hash, prefix, hint)
       SELECT id, $1, 'test', hash, 'p', 'h' FROM unnest($2::text[], $3::bytea[]) AS made (id, hash)`,
      [partner.id, keys.map(() => newId('key')), keys.map((key) => hash(key)[0])],
    );
    assert.equal(await ask(keys[0] ?? ''), 200);
    await asOwner(stack, `UPDATE api_key SET revoked_at = now() WHERE partner_id = $1 AND hint = 'h'`, [
      partner.id,
    ]);
    assert.deepEqual(new Set(await Promise.all(keys.slice(1).map(ask))), new Set([401]));
    await until('the first one is refused', async () => (await ask(keys[0] ?? '')) === 401);
    return keys;
  };

  for (const [kind, floodOf] of Object.entries({
    'made-up': async () => Array.from({ length: 217 }, () => generateApiKey('test')),
    revoked: revokedKeys,
  })) {
    it(`looks ${kind} API keys up in a separate queue, and genuine ones at once, though it has seen none yet`, async () => {
      const partner = await stack.createPartner();
      const fresh = await startApi({ ...stack.config, port: await freePort() }, pino({ level: 'silent' }));
      const hold = await connectTo(ownerUrlOf(stack.config.databaseUrl));
      const clients = new Pool(new URL(fresh.url).origin, { connections: 218 });
      try {
        const refusals: string[] = [];
        const ask = async (key: string) => {
          const headers = { authorization: `Bearer ${key}` };
          const { statusCode, body } = await clients.request({ method: 'GET', path: '/v1/ping', headers });
          const text = await body.text();
          if (statusCode === 429) refusals.push(text);
          return statusCode;
        };
        const keys = await floodOf(partner, ask);
        // Whoever waits for the lock has 4 s, so all connections are made before. The first look reads which keys there are.
        const open = () => clients.request({ method: 'GET', path: '/healthz' });
        await Promise.all(keys.map(async () => (await open()).body.dump()));
        assert.equal(await ask(generateApiKey('test')), 401);
        await hold.query('BEGIN; LOCK TABLE partner IN ACCESS EXCLUSIVE MODE');
        const strangers = keys.map(ask);
        assert.equal(await Promise.race(strangers), 429);
        const genuine = ask(partner.keys.test);
        await hold.query('ROLLBACK');
        assert.equal(await genuine, 200);
        const statuses = await Promise.all(strangers);
        assert.deepEqual(
          [401, 429].map((expected) => statuses.filter((status) => status === expected).length),
          [216, 1],
        );
        assert.match(refusals.join(), /Too many API keys that this service does not know/);
      } finally {
        await hold.end();
        await clients.destroy();
        await fresh.stop();
      }
    });
  }

  it('is told which accounts each process serves that shares the database, until that process has been gone for three seconds', async () => {
    const [one, other] = [randomUUID(), randomUUID()];
    const heard = async () => (await shareActiveAccounts(stack.orm, other, ['prt_2/test'])).flat();
    await shareActiveAccounts(stack.orm, one, ['prt_1/live']);
    const first = await heard();
    assert.ok(first.includes('prt_1/live'));
    assert.ok(!first.includes('prt_2/test'), 'not its own');
    await asOwner(stack, `UPDATE api_process SET seen_at = now() - interval '3 seconds' WHERE id = $1`, [
      one,
    ]);
    assert.ok(!(await heard()).includes('prt_1/live'));
  });
});
