import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { pino } from 'pino';
import { Pool } from 'undici';
import { createApiKey } from '../../accounts/api-keys.ts';
import { shareActiveAccounts } from '../../accounts/usage.ts';
import { type Admission, createAdmission, STRANGERS } from '../../api/http/admission.ts';
import { startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { Tenant } from '../../domain/mode.ts';
import { apiKeyHasher, generateApiKey } from '../../platform/crypto/api-key.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { untilAnswered } from '../support/crash/operations.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../support/money.ts';
import { asOwner, connectTo, ownerUrlOf } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const range = (account: string, from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => `${account}${from + n}`).join(' ');

describe('request admission', () => {
  const admissionOf = (
    accountConcurrency: number,
    maxWaitMs = 60_000,
    maxTurnMs = 60_000,
    now?: () => number,
  ) => createAdmission({ accountConcurrency, maxWaitMs, maxTurnMs, maxStartMs: maxTurnMs }, now);
  const ACCOUNTS: Record<string, Tenant> = {
    a: { partnerId: 'prt_1', mode: 'live' },
    b: { partnerId: 'prt_2', mode: 'live' },
    t: { partnerId: 'prt_1', mode: 'test' },
    s: { partnerId: STRANGERS, mode: 'live' },
  };
  const arriveOf = (admission: Admission, name: string) =>
    admission.arrive(ACCOUNTS[name.charAt(0)] as Tenant);
  /** Lets everything happen that is not waiting for something else to. */
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  /** Requests with names that begin with the letter of their account. Their work ends on demand. */
  function requestsOf(admission: Admission) {
    const begun: string[] = [];
    const visits: Record<string, ReturnType<Admission['arrive']> & { began: Promise<boolean> }> = {};
    const arrive = (name: string, startsWorkflow = false) => {
      const visit = arriveOf(admission, name);
      const began = visit.begin(startsWorkflow).then((isHere) => {
        if (isHere) begun.push(name);
        return isHere;
      });
      // A test may end before all its requests have their turn, and is over when they give up.
      began.catch(() => {});
      visits[name] = { ...visit, began };
    };
    const act = (verb: string, name: string) => {
      if (verb === 'ask' || verb === 'start') return arrive(name, verb === 'start');
      visits[name]?.[verb as 'end' | 'leave' | 'passTurn']();
    };
    /** Takes steps, and asserts which requests begin after each: `start` is to ask for what starts a workflow. */
    const play = async (...steps: [does: string, begins: string][]) => {
      for (const [does, begins] of steps) {
        const before = begun.length;
        for (const [verb = '', ...names] of does.split(', ').map((step) => step.split(' ')))
          for (const name of names) act(verb, name);
        const expected = begins === '' ? [] : begins.split(' ');
        await settled();
        await until(`${begins} begin after ${does}`, () => expected.every((name) => begun.includes(name)));
        assert.deepEqual(begun.slice(before).sort(), expected.sort(), does);
      }
    };
    return { begun, visits, arrive, play };
  }

  const isRefusal = (code: string) => (error: unknown) =>
    error instanceof ApiError && error.code === code && (error.detail.retryAfterSeconds ?? 0) >= 1;

  for (const [what, admission, ...steps] of [
    [
      "lets a limited number of an account's requests work at once, and the others in order of arrival",
      admissionOf(2),
      [`ask ${range('a', 1, 5)}`, 'a1 a2'],
      ['end a2', 'a3'],
      ['end a1 a3', 'a4 a5'],
    ],
    [
      'gives a free place to a request that waits, not to one that arrives at that moment',
      admissionOf(1),
      ['ask a1 a2', 'a1'],
      ['end a1, ask a3', 'a2'],
    ],
    [
      'lets two requests of each account begin when several accounts ask',
      admissionOf(16),
      ['ask a1 a2 a3', 'a1 a2 a3'],
      ['ask b1 a4 a5 a6', 'b1'],
      ['end a1 a2 a3', 'a4 a5'],
      ['end a4', 'a6'],
    ],
    [
      'lets two of those who may be strangers begin, and as many of an account that is alone beside them',
      admissionOf(16),
      ['ask s1 s2 s3', 's1 s2'],
      ['ask a1 a2 a3', 'a1 a2 a3'],
    ],
    [
      'goes on after the longest turn',
      admissionOf(16, 60_000, 10),
      ['ask a1', 'a1'],
      ['ask b1 b2 b3', 'b1 b2 b3'],
    ],
    [
      'lets eight that start workflows begin at once if only one account starts some, and the next when one has ended',
      admissionOf(16),
      [`start ${range('a', 1, 10)}`, range('a', 1, 8)],
      ['end a3', 'a9'],
    ],
    [
      'lets one that starts a workflow begin of each account if several start some, and other requests at once',
      admissionOf(16),
      ['start a1 a2 a3', 'a1 a2 a3'],
      ['start b1 a4, ask a5', 'b1 a5'],
      ['end a1 a2', ''],
      ['end a3', 'a4'],
    ],
    [
      'lets the next start begin before a slow one has its answer',
      admissionOf(16, 60_000, 10),
      [`start ${range('a', 1, 9)}`, range('a', 1, 9)],
    ],
    [
      'lets the next start begin when one has exceeded its turn, and counts that one until its end',
      admissionOf(9),
      [`start ${range('a', 1, 10)}`, range('a', 1, 8)],
      ['passTurn a3 a3 a10', 'a9'],
      ['passTurn a4', ''],
      ['end a3', 'a10'],
    ],
  ] as [string, Admission, ...[does: string, begins: string][]][]) {
    it(what, () => requestsOf(admission).play(...steps));
  }

  it('delays no request of another account or mode', async () => {
    const { arrive, play } = requestsOf(admissionOf(1));
    await play([`ask ${range('a', 0, 200)}`, 'a0']);
    assert.throws(() => arrive('a201'), isRefusal('rate_limited'));
    await play(['ask b1 t1', 'b1 t1']);
  });

  it("refuses an account's 217th request, also while bodies are arriving, and admits one more for each that ends", () => {
    const admission = admissionOf(16);
    const visits = Array.from({ length: 216 }, () => arriveOf(admission, 'a'));
    assert.throws(() => arriveOf(admission, 'a'), isRefusal('rate_limited'));
    visits[0]?.end();
    arriveOf(admission, 'a');
    assert.throws(() => arriveOf(admission, 'a'), isRefusal('rate_limited'));
  });

  it('refuses a request that waited too long, and goes on with the next one', async () => {
    const { visits, play } = requestsOf(admissionOf(1, 20));
    await play(['ask a1 a2', 'a1']);
    await assert.rejects(visits.a2?.began ?? Promise.resolve(), isRefusal('unavailable'));
    await play(['end a2, ask a3, end a1', 'a3']);
  });

  it('counts both waits of a start together, and frees what it held', async () => {
    const { visits, play } = requestsOf(admissionOf(16, 20));
    await play([`start ${range('a', 1, 9)}`, range('a', 1, 8)]);
    await assert.rejects(visits.a9?.began ?? Promise.resolve(), isRefusal('unavailable'));
    await play([`end ${range('a', 1, 9)}, start ${range('a', 10, 17)}`, range('a', 10, 17)]);
  });

  it('drops requests whose client has gone, waiting or not', async () => {
    const admission = admissionOf(1);
    const { visits, play } = requestsOf(admission);
    await play(['ask a1 a2 a3', 'a1'], ['leave a2', '']);
    assert.equal(await visits.a2?.began, false);
    const goneAtTheDoor = arriveOf(admission, 'a');
    goneAtTheDoor.leave();
    assert.equal(await goneAtTheDoor.begin(false), false);
    goneAtTheDoor.end();
    await play(['end a2, end a1', 'a3']);
  });

  it('refuses waiting and new requests once the process stops, and lets running ones finish', async () => {
    const admission = admissionOf(1);
    const { visits, arrive, play } = requestsOf(admission);
    await play(['ask a1 a2', 'a1']);
    const late = arriveOf(admission, 'a');
    admission.stop();
    await assert.rejects(visits.a2?.began ?? Promise.resolve(), isRefusal('unavailable'));
    await assert.rejects(late.begin(false), isRefusal('unavailable'));
    assert.throws(() => arrive('b1'), isRefusal('unavailable'));
    await play(['end a1 a2', '']);
  });

  describe('of several processes', () => {
    it('shares what one account may have in progress between the processes it sends requests to', async () => {
      const admission = admissionOf(16);
      const { play } = requestsOf(admission);
      await play(['ask a1', 'a1']);
      await admission.exchange(async (accounts) => {
        assert.deepEqual(accounts, ['prt_1/live']);
        return [['prt_1/live'], ['prt_1/live'], ['prt_1/live']];
      });
      await play([`ask ${range('a', 2, 6)}`, 'a2 a3 a4']);
      await admission.exchange(async () => []);
      await play(['end a2', 'a5 a6']);
    });

    it('lets an account begin less at once if others are active elsewhere, as far as could be asked last', async () => {
      const admission = admissionOf(16);
      await admission.exchange(() => assert.fail('no account is active'));
      const { play } = requestsOf(admission);
      await play(['ask a1', 'a1']);
      await admission.exchange(async () => [['prt_2/live']]);
      await assert.rejects(admission.exchange(() => Promise.reject(new Error('away'))));
      await play(['ask a2 a3 a4', 'a2']);
    });

    for (const [tookMs, begins] of [
      [60_000, ''],
      [1, 'a2'],
    ] as const) {
      it(`lets an account that two processes serve rest after a start of ${tookMs} ms`, async () => {
        let nowMs = 0;
        const admission = admissionOf(16, 60_000, 60_000, () => nowMs);
        const { visits, play } = requestsOf(admission);
        await play(['start a1', 'a1']);
        await admission.exchange(async () => [['prt_1/live', 'prt_2/live']]);
        await play(['start a2', '']);
        nowMs = tookMs;
        await play(['end a1', begins]);
        visits.a2?.leave();
      });
    }

    it('is told by each process that shares the database, until that process has been gone for three seconds', async () => {
      const stack = await sharedStack();
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

  for (const { large, transferred } of [
    { large: 'response', transferred: { bodyBytes: 0, responseBytes: 1_000_000 } },
    { large: 'body', transferred: { bodyBytes: 60_000, responseBytes: 0 } },
  ]) {
    it(`lets an account rest after a large ${large} while another is active, and not if it is alone`, async () => {
      const { begun, visits, play } = requestsOf(admissionOf(16));
      await play(['ask a1', 'a1'], ['ask b1 b2 b3', 'b1 b2'], ['ask a2 a3', 'a2']);
      visits.a1?.end(transferred);
      visits.b1?.end({ bodyBytes: 500, responseBytes: 2_000 });
      await visits.b3?.began;
      assert.ok(!begun.includes('a3'));
      assert.ok(await visits.a3?.began);

      const alone = requestsOf(admissionOf(1));
      await alone.play(['ask a1 a2', 'a1']);
      alone.visits.a1?.end(transferred);
      await settled();
      assert.deepEqual(alone.begun, ['a1', 'a2']);
    });
  }

  it('counts how many requests it refused for which reason', async () => {
    const admission = admissionOf(1, 20);
    const { visits, play } = requestsOf(admission);
    await play(['ask a1 a2', 'a1']);
    await assert.rejects(visits.a2?.began ?? Promise.resolve());
    const metrics = await Promise.all(admission.metrics.map((metric) => metric.get()));
    const refused = metrics.find(({ name }) => name === 'admission_requests_refused_total');
    assert.deepEqual(
      refused?.values.map(({ labels, value }) => [...Object.values(labels), value]),
      [
        ['queue_full', 0],
        ['too_late', 1],
        ['stopping', 0],
      ],
    );
  });
});

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
});
