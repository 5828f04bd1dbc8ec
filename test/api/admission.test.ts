import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import pg from 'pg';
import { pino } from 'pino';
import { Pool } from 'undici';
import { shareActiveAccounts } from '../../accounts/active-accounts.ts';
import { createApiKey } from '../../accounts/api-keys.ts';
import { type Admission, createAdmission } from '../../api/http/admission.ts';
import { startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import { ApiError } from '../../domain/api-error.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { apiKeyHasher, generateApiKey } from '../../platform/crypto/api-key.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard, settledCard } from '../support/cards.ts';
import { balanceOf, fundedPartner } from '../support/money.ts';
import { asOwner, ownerUrlOf } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe('request admission', () => {
  const admissionOf = (
    accountConcurrency: number,
    maxWaitMs = 60_000,
    maxTurnMs = 60_000,
    now?: () => number,
  ) => createAdmission({ accountConcurrency, maxWaitMs, maxTurnMs, maxStartMs: maxTurnMs }, now);
  const account = (partnerId: string, mode: 'test' | 'live' = 'live') => ({ partnerId, mode });
  /** Lets everything happen that is not waiting for something else to. */
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  /** Requests of one account whose work ends on demand. */
  function requestsOf(admission: Admission, partnerId: string, mode?: 'test' | 'live') {
    const begun: number[] = [];
    const arrive = (name: number, startsWorkflow = false) => {
      const visit = admission.arrive(account(partnerId, mode));
      const began = visit.begin(startsWorkflow).then((isHere) => {
        if (isHere) begun.push(name);
        return isHere;
      });
      // A test may end before all its requests have their turn, and is over when they give up.
      began.catch(() => {});
      return { ...visit, began };
    };
    return { begun, arrive };
  }

  const isRefusal = (code: string) => (error: unknown) =>
    error instanceof ApiError && error.code === code && (error.detail.retryAfterSeconds ?? 0) >= 1;

  it("lets a limited number of an account's requests work at once, and the others in order of arrival", async () => {
    const { begun, arrive } = requestsOf(admissionOf(2), 'prt_1');
    const requests = [1, 2, 3, 4, 5].map((name) => arrive(name));
    await settled();
    assert.deepEqual(begun, [1, 2]);
    requests[1]?.end();
    await settled();
    assert.deepEqual(begun, [1, 2, 3]);
    requests[0]?.end();
    requests[2]?.end();
    await settled();
    assert.deepEqual(begun, [1, 2, 3, 4, 5]);
  });

  it('gives a free place to a request that waits, not to one that arrives at that moment', async () => {
    const { begun, arrive } = requestsOf(admissionOf(1), 'prt_1');
    const first = arrive(1);
    arrive(2);
    await settled();
    first.end();
    arrive(3);
    await settled();
    assert.deepEqual(begun, [1, 2]);
  });

  it('delays no request of another account or mode', async () => {
    const admission = admissionOf(1);
    const flood = requestsOf(admission, 'prt_1');
    for (let name = 0; name < 201; name++) flood.arrive(name);
    assert.throws(() => flood.arrive(201), isRefusal('rate_limited'));
    for (const other of [requestsOf(admission, 'prt_2'), requestsOf(admission, 'prt_1', 'test')]) {
      other.arrive(1);
      await settled();
      assert.deepEqual(other.begun, [1]);
    }
    assert.deepEqual(flood.begun, [0]);
  });

  it("refuses an account's 217th request, also while bodies are arriving, and admits one more for each that ends", () => {
    const admission = admissionOf(16);
    const visits = Array.from({ length: 216 }, () => admission.arrive(account('prt_1')));
    assert.throws(() => admission.arrive(account('prt_1')), isRefusal('rate_limited'));
    visits[0]?.end();
    admission.arrive(account('prt_1'));
    assert.throws(() => admission.arrive(account('prt_1')), isRefusal('rate_limited'));
  });

  it('refuses a request that waited too long, and goes on with the next one', async () => {
    const { begun, arrive } = requestsOf(admissionOf(1, 20), 'prt_1');
    const first = arrive(1);
    const second = arrive(2);
    await assert.rejects(second.began, isRefusal('unavailable'));
    second.end();
    arrive(3);
    first.end();
    await settled();
    assert.deepEqual(begun, [1, 3]);
  });

  it('drops requests whose client has gone, waiting or not', async () => {
    const admission = admissionOf(1);
    const { begun, arrive } = requestsOf(admission, 'prt_1');
    const first = arrive(1);
    const second = arrive(2);
    const third = arrive(3);
    second.leave();
    assert.equal(await second.began, false);
    second.end();
    const goneAtTheDoor = admission.arrive(account('prt_1'));
    goneAtTheDoor.leave();
    assert.equal(await goneAtTheDoor.begin(false), false);
    goneAtTheDoor.end();
    first.end();
    assert.equal(await third.began, true);
    assert.deepEqual(begun, [1, 3]);
  });

  it('refuses waiting and new requests once the process stops, and lets running ones finish', async () => {
    const admission = admissionOf(1);
    const { begun, arrive } = requestsOf(admission, 'prt_1');
    const first = arrive(1);
    const second = arrive(2);
    const late = admission.arrive(account('prt_1'));
    await settled();
    admission.stop();
    await assert.rejects(second.began, isRefusal('unavailable'));
    await assert.rejects(late.begin(false), isRefusal('unavailable'));
    assert.throws(() => admission.arrive(account('prt_2')), isRefusal('unavailable'));
    assert.equal(await first.began, true);
    for (const visit of [first, second, late]) visit.end();
    assert.deepEqual(begun, [1]);
  });

  it('lets two requests of each account begin when several accounts ask, and goes on after the longest turn', async () => {
    const admission = admissionOf(16);
    const [flood, quiet] = [requestsOf(admission, 'prt_1'), requestsOf(admission, 'prt_2')];
    const first = [1, 2, 3].map((name) => flood.arrive(name));
    await settled();
    quiet.arrive(1);
    const more = [4, 5, 6].map((name) => flood.arrive(name));
    await settled();
    assert.deepEqual([flood.begun, quiet.begun], [[1, 2, 3], [1]]);
    for (const request of first) request.end();
    await settled();
    assert.deepEqual(flood.begun, [1, 2, 3, 4, 5]);
    more[0]?.end();
    await settled();
    assert.deepEqual(flood.begun, [1, 2, 3, 4, 5, 6]);

    const hasty = admissionOf(16, 60_000, 10);
    requestsOf(hasty, 'prt_1').arrive(1);
    const slow = requestsOf(hasty, 'prt_2');
    const begun = [1, 2, 3].map((name) => slow.arrive(name).began);
    assert.deepEqual(await Promise.all(begun), [true, true, true]);
  });

  describe('for requests that start workflows', () => {
    const startersOf = (admission: Admission, partnerId: string) => {
      const { begun, arrive } = requestsOf(admission, partnerId);
      return { begun, arrive: (name: number) => arrive(name, true) };
    };

    it('lets eight begin at once if only one account starts some, and the next when one has ended', async () => {
      const { begun, arrive } = startersOf(admissionOf(16), 'prt_1');
      const requests = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(arrive);
      await settled();
      assert.deepEqual(begun, [1, 2, 3, 4, 5, 6, 7, 8]);
      requests[2]?.end();
      await requests[8]?.began;
      assert.deepEqual(begun, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    });

    it('lets one of each account begin if several start some, and other requests at once', async () => {
      const admission = admissionOf(16);
      const [flood, quiet] = [startersOf(admission, 'prt_1'), startersOf(admission, 'prt_2')];
      const asked = [flood.arrive(1), flood.arrive(2), flood.arrive(3)];
      await settled();
      quiet.arrive(1);
      flood.arrive(4);
      const read = requestsOf(admission, 'prt_1').arrive(5);
      assert.equal(await read.began, true);
      assert.deepEqual([flood.begun, quiet.begun], [[1, 2, 3], [1]]);
      asked[0]?.end();
      asked[1]?.end();
      await settled();
      assert.deepEqual(flood.begun, [1, 2, 3], 'one of its own is still on its way');
      asked[2]?.end();
      await settled();
      assert.deepEqual(flood.begun, [1, 2, 3, 4]);
    });

    it('lets the next begin before a slow one has its answer', async () => {
      const { arrive } = startersOf(admissionOf(16, 60_000, 10), 'prt_1');
      const requests = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(arrive);
      assert.equal(await requests[8]?.began, true);
    });

    it('lets the next begin when one has exceeded its turn, and counts that one until its end', async () => {
      const admission = admissionOf(9);
      const { begun, arrive } = startersOf(admission, 'prt_1');
      const requests = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(arrive);
      await settled();
      requests[2]?.passTurn();
      requests[2]?.passTurn();
      requests[9]?.passTurn();
      await settled();
      assert.deepEqual(begun, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
      requests[3]?.passTurn();
      await settled();
      assert.deepEqual(begun, [1, 2, 3, 4, 5, 6, 7, 8, 9], 'nine are at work');
      requests[2]?.end();
      await requests[9]?.began;
      assert.deepEqual(begun, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    });

    it('counts both waits of a request together, and frees what it held', async () => {
      const admission = admissionOf(16, 20);
      const { begun, arrive } = startersOf(admission, 'prt_1');
      const requests = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(arrive);
      await assert.rejects(requests[8]?.began ?? Promise.resolve(), isRefusal('unavailable'));
      for (const request of requests) request.end();
      for (const name of [10, 11, 12, 13, 14, 15, 16, 17]) arrive(name);
      await settled();
      assert.equal(begun.length, 16);
    });
  });

  describe('of several processes', () => {
    it('shares what one account may have in progress between the processes it sends requests to', async () => {
      const admission = admissionOf(16);
      const { begun, arrive } = requestsOf(admission, 'prt_1');
      arrive(1);
      await settled();
      await admission.exchange(async (accounts) => {
        assert.deepEqual(accounts, ['prt_1/live']);
        return [['prt_1/live'], ['prt_1/live'], ['prt_1/live']];
      });
      const requests = [2, 3, 4, 5, 6].map((name) => arrive(name));
      await settled();
      assert.deepEqual(begun, [1, 2, 3, 4]);
      await admission.exchange(async () => []);
      requests[0]?.end();
      await settled();
      assert.deepEqual(begun, [1, 2, 3, 4, 5, 6]);
    });

    it('lets an account begin less at once if others are active in another process only', async () => {
      const admission = admissionOf(16);
      const { begun, arrive } = requestsOf(admission, 'prt_1');
      arrive(1);
      await settled();
      await admission.exchange(async () => [['prt_2/live']]);
      for (const name of [2, 3, 4]) arrive(name);
      await settled();
      assert.deepEqual(begun, [1, 2]);
    });

    it('lets an account that two processes serve rest after each start, as long as the start took', async () => {
      for (const [tookMs, rests] of [
        [60_000, true],
        [1, false],
      ] as const) {
        let nowMs = 0;
        const admission = admissionOf(16, 60_000, 60_000, () => nowMs);
        const { begun, arrive } = requestsOf(admission, 'prt_1');
        const first = arrive(1, true);
        await first.began;
        await admission.exchange(async () => [['prt_1/live', 'prt_2/live']]);
        const second = arrive(2, true);
        await settled();
        nowMs = tookMs;
        first.end();
        await settled();
        if (rests) assert.deepEqual(begun, [1]);
        else assert.equal(await second.began, true);
        second.leave();
      }
    });

    it('asks nobody while no account is active, and keeps what it knows if the others cannot be asked', async () => {
      const admission = admissionOf(16);
      await admission.exchange(() => assert.fail('no account is active'));
      const { begun, arrive } = requestsOf(admission, 'prt_1');
      arrive(1);
      await settled();
      await admission.exchange(async () => [['prt_2/live']]);
      await assert.rejects(admission.exchange(() => Promise.reject(new Error('away'))));
      for (const name of [2, 3]) arrive(name);
      await settled();
      assert.deepEqual(begun, [1, 2]);
    });

    it('is told by each process that shares the database, until that process has been gone for three seconds', async () => {
      const stack = await sharedStack();
      const { orm } = stack;
      const [one, other] = [randomUUID(), randomUUID()];
      await shareActiveAccounts(orm, one, ['prt_1/live']);
      const heard = await shareActiveAccounts(orm, other, ['prt_2/test']);
      assert.ok(heard.some((accounts) => accounts.includes('prt_1/live')));
      assert.ok(!heard.some((accounts) => accounts.includes('prt_2/test')), 'not its own');
      await asOwner(stack, `UPDATE api_process SET seen_at = now() - interval '3 seconds' WHERE id = $1`, [
        one,
      ]);
      const later = await shareActiveAccounts(orm, other, ['prt_2/test']);
      assert.ok(!later.some((accounts) => accounts.includes('prt_1/live')));
    });
  });

  for (const { large, transferred } of [
    { large: 'response', transferred: { bodyBytes: 0, responseBytes: 1_000_000 } },
    { large: 'body', transferred: { bodyBytes: 60_000, responseBytes: 0 } },
  ]) {
    it(`lets an account rest after a large ${large} while another is active, and the other not`, async () => {
      const admission = admissionOf(16);
      const heavy = requestsOf(admission, 'prt_1');
      const light = requestsOf(admission, 'prt_2');
      const others = [light.arrive(1), light.arrive(2), light.arrive(3)];
      const requests = [heavy.arrive(1), heavy.arrive(2), heavy.arrive(3)];
      await settled();
      assert.deepEqual(
        [heavy.begun, light.begun.slice(0, 2)],
        [
          [1, 2],
          [1, 2],
        ],
      );
      requests[0]?.end(transferred);
      others[0]?.end({ bodyBytes: 500, responseBytes: 2_000 });
      await others[2]?.began;
      assert.deepEqual(heavy.begun, [1, 2]);
      assert.ok(await requests[2]?.began);
    });
  }

  it('lets an account that is alone begin the next request right after a large response', async () => {
    const { begun, arrive } = requestsOf(admissionOf(1), 'prt_1');
    const first = arrive(1);
    arrive(2);
    await settled();
    first.end({ bodyBytes: 0, responseBytes: 1_000_000 });
    await settled();
    assert.deepEqual(begun, [1, 2]);
  });

  it('measures how many requests work and wait, and how many it refused for which reason', async () => {
    const admission = admissionOf(1, 20);
    const { arrive } = requestsOf(admission, 'prt_1');
    const [first, second] = [arrive(1), arrive(2)];
    requestsOf(admission, 'prt_2').arrive(1);
    await settled();
    const values = async () =>
      Object.fromEntries(
        (await Promise.all(admission.metrics.map((metric) => metric.get()))).map(({ name, values: all }) => [
          name,
          all.map(({ value, labels }) => [value, ...Object.values(labels)]),
        ]),
      );
    assert.deepEqual(await values(), {
      admission_requests_at_work: [[2]],
      admission_requests_waiting: [[1]],
      admission_requests_refused_total: [
        [0, 'queue_full'],
        [0, 'too_late'],
        [0, 'stopping'],
      ],
    });
    await assert.rejects(second?.began ?? Promise.resolve());
    second?.end();
    first?.end();
    assert.deepEqual(await values(), {
      admission_requests_at_work: [[1]],
      admission_requests_waiting: [[0]],
      admission_requests_refused_total: [
        [0, 'queue_full'],
        [1, 'too_late'],
        [0, 'stopping'],
      ],
    });
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
  function untilAdmitted({ config }: TestStack, atWork: number, waiting: number): Promise<boolean> {
    return until(`${atWork} are at work and ${waiting} wait`, async () => {
      const text = await (await fetch(`http://${config.host}:${config.port}/metrics`)).text();
      const numberOf = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
      const values = [numberOf('admission_requests_at_work'), numberOf('admission_requests_waiting')];
      return values[0] === atWork && values[1] === waiting;
    });
  }

  /** Makes everybody who reads cards wait until it is released. */
  async function holdCards({ config }: TestStack) {
    const owner = new pg.Client(ownerUrlOf(config.databaseUrl));
    await owner.connect();
    await owner.query('BEGIN; LOCK TABLE card IN ACCESS EXCLUSIVE MODE');
    return { release: () => owner.end() };
  }

  const claims = (on: TestStack, key: string) =>
    asOwner(on, 'SELECT id FROM idempotency_claim WHERE key = $1', [key]);

  it('answers 240 simultaneous issuances of one account without a 500, and the money adds up', async () => {
    const shared = await sharedStack();
    for (const mode of ['test', 'live'] as const) {
      const partner = await fundedPartner(shared, 30 * 1_150);
      const issue = async () => {
        const options = { mode, idempotencyKey: randomUUID() };
        const body = { amount: 1_000, external_ref: randomUUID() };
        const answer = await createCard(partner, body, options);
        assert.ok([201, 202, 402, 429, 503].includes(answer.status), answer.text);
        if (answer.status !== 503) return answer;
        // A 503 does not say whether the card is on its way; the same request does, once it gets through.
        return until('it has an answer', async () => {
          const again = await createCard(partner, body, options);
          const isKnown = ![409, 429, 503].includes(again.status);
          return isKnown && again;
        });
      };
      const answers = await Promise.all(Array.from({ length: 240 }, issue));
      for (const answer of answers) {
        if (answer.status === 429) assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
        if (answer.status === 202) await settledCard(partner, answer.json.id);
      }
      const issued = answers.filter(({ status }) => status === 201 || status === 202).length;
      assert.ok(issued >= 16, `${issued} were issued`);
      const left = (30 - issued) * 1_150;
      assert.deepEqual(await balanceOf(partner, mode), [left, 0, left]);
    }
    assert.deepEqual(await checkLedger(shared.orm.em.fork()), []);
  });

  describe('while 16 requests of an account are at work', () => {
    const live = { mode: 'live' } as const;
    let partner: TestPartner;
    let other: TestPartner;
    let atWork: Promise<unknown>;
    let isReleased: boolean;
    before(async () => {
      partner = await fundedPartner(stack, 100_000);
      other = await fundedPartner(stack, 100_000);
    });
    // Live issuances: without a worker they wait for the first answer of their workflows.
    beforeEach(async () => {
      isReleased = false;
      atWork = Promise.all(Array.from({ length: 16 }, () => createCard(partner, { amount: 1_000 }, live)));
      await untilAdmitted(stack, 16, 0);
    });
    afterEach(async () => {
      await release();
      await stack.stopWorker();
    });

    async function release(): Promise<void> {
      if (isReleased) return;
      isReleased = true;
      await stack.startWorker();
      await atWork;
    }

    it('queues 200 more, whatever their API key, and answers the 217th with 429 and Retry-After', async () => {
      const { key } = await createApiKey(stack.operator, { ...live, partnerId: partner.id, name: null });
      const headers = { authorization: `Bearer ${key}` };
      const queued = Promise.all(
        Array.from({ length: 200 }, (_, i) =>
          partner.call('GET', '/balance', i % 2 === 0 ? { headers } : live),
        ),
      );
      await untilAdmitted(stack, 16, 200);
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
      await untilAdmitted(stack, 16, 200);
      await release();
      assert.ok((await queued).every(({ status }) => status === 200));
    });

    it('drops a request whose client hangs up while it waits', async () => {
      const key = randomUUID();
      const hangUp = new AbortController();
      const asked = fetch(`http://${stack.config.host}:${stack.config.port}/v1/cards`, {
        method: 'POST',
        headers: {
          ...{ authorization: `Bearer ${partner.keys.live}`, 'content-type': 'application/json' },
          'idempotency-key': key,
        },
        body: '{"amount":1000,"external_ref":"nobody-waits"}',
        signal: hangUp.signal,
      });
      await untilAdmitted(stack, 16, 1);
      hangUp.abort();
      await assert.rejects(asked);
      await untilAdmitted(stack, 16, 0);
      await release();
      assert.deepEqual(await claims(stack, key), []);
    });
  });

  it("answers 503 if the request's turn does not come in time, and keeps nothing of the request", async () => {
    const hasty = await startTestStack({ cardCreationWaitMs: 200, accountConcurrency: 1 }, { worker: false });
    try {
      const partner = await fundedPartner(hasty, 100_000);
      const { id } = (await createCard(partner, { amount: 1_000 })).json;
      const before = await balanceOf(partner);
      // The metrics measure the whole database now and then, and must not have to do so while cards are locked.
      await untilAdmitted(hasty, 0, 0);
      const held = await holdCards(hasty);
      const atWork = partner.call('GET', `/cards/${id}`);
      await untilAdmitted(hasty, 1, 0);
      const key = randomUUID();
      const late = await createCard(partner, { amount: 1_000 }, { idempotencyKey: key });
      expectError(late, 'unavailable');
      assert.match(late.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
      assert.deepEqual(await claims(hasty, key), []);
      await held.release();
      await atWork;
      assert.deepEqual(await balanceOf(partner), before);
      assert.equal((await createCard(partner, { amount: 1_000 }, { idempotencyKey: key })).status, 201);
    } finally {
      await hasty.stop();
    }
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
      await untilAdmitted(stack, 0, 0);
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
      `INSERT INTO api_key (id, partner_id, mode, hash, hint)
       SELECT id, $1, 'test', hash, 'h' FROM unnest($2::text[], $3::bytea[]) AS made (id, hash)`,
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
      const hold = new pg.Client(ownerUrlOf(stack.config.databaseUrl));
      const clients = new Pool(new URL(fresh.url).origin, { connections: 218 });
      await hold.connect();
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
