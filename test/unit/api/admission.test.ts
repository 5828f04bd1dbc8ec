import assert from 'node:assert/strict';
import { type Admission, createAdmission, STRANGERS } from '../../../api/http/admission.ts';
import { ApiError } from '../../../domain/api-error.ts';
import type { Tenant } from '../../../domain/mode.ts';
import { until } from '../../support/until.ts';

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
