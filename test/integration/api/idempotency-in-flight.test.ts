import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expectError } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { balanceOf, fundedPartner } from '../../support/money.ts';
import { asOwner, ownerUrlOf } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import { type Answer, startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';

/**
 * Asserts that one of them ran, and that each of the others got its answer or, in live mode, a 409.
 * @returns the answer of the one
 */
function expectOneRun(answers: Answer[], mode = 'test'): Answer {
  const ran = answers.filter(
    (answer) => answer.status < 400 && answer.headers.get('idempotent-replayed') === null,
  );
  assert.equal(ran.length, 1, 'not exactly one request ran');
  const [first] = ran as [Answer];
  for (const answer of answers) {
    if (mode === 'live' && answer.status === 409) expectError(answer, 'idempotency_in_flight');
    else assert.equal(answer.text, first.text);
  }
  return first;
}

describe('20 simultaneous requests with one Idempotency-Key', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, 100_000);
  });

  const twenty = (ask: () => Promise<Answer>) => Promise.all(Array.from({ length: 20 }, ask));

  for (const mode of ['test', 'live'] as const) {
    it(`make one card in ${mode} mode`, async () => {
      const body = { amount: 1_000, external_ref: 'r' };
      const answers = await twenty(() => createCard(partner, body, { mode, idempotencyKey: 'k' }));
      const first = expectOneRun(answers, mode);
      assert.equal(first.status, 201, first.text);
      const { json } = await partner.call('GET', '/cards', { mode });
      assert.deepEqual(json.data, [first.json]);
      assert.deepEqual(await balanceOf(partner, mode), [98_850, 0, 98_850]);
    });
  }

  it('make one credit', async () => {
    const answers = await twenty(() =>
      partner.call('POST', '/test/credit', { body: { amount: 1 }, idempotencyKey: 'k' }),
    );
    assert.equal(expectOneRun(answers).status, 201);
    assert.deepEqual(await balanceOf(partner), [100_001, 0, 100_001]);
    assert.equal(
      (await asOwner(stack, 'SELECT FROM faucet_credit WHERE partner_id = $1', [partner.id])).length,
      1,
    );
  });

  for (const mode of ['test', 'live'] as const) {
    it(`get one refusal in ${mode} mode, unless they are told to wait`, async () => {
      const options = { mode, idempotencyKey: 'k' };
      const answers = await twenty(() =>
        createCard(partner, { amount: 1_000_000, external_ref: 'r' }, options),
      );
      const refusals = answers.filter((answer) => mode === 'test' || answer.status !== 409);
      assert.ok(refusals.length >= 1);
      for (const answer of answers) {
        if (mode === 'live' && answer.status === 409) expectError(answer, 'idempotency_in_flight');
        else assert.equal(answer.text, refusals[0]?.text);
      }
      assert.equal(refusals[0]?.json.error.code, 'insufficient_funds');
      assert.equal(refusals.filter((answer) => answer.headers.get('idempotent-replayed') === null).length, 1);
      assert.deepEqual(await balanceOf(partner, mode), [100_000, 0, 100_000]);
    });
  }
});

describe('an Idempotency-Key whose request is running', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    // Without a worker a request runs until its waiting time is over, which is longer than the test.
    stack = await startTestStack({ cardCreationWaitMs: 60_000 }, { worker: false });
    partner = await fundedPartner(stack, 100_000);
  });
  afterEach(() => stack.stopWorker());
  after(() => stack.stop());

  const claims = () => asOwner(stack, 'SELECT FROM idempotency_claim WHERE partner_id = $1', [partner.id]);

  it('gets 409 in live mode, or 422 for another request, and then replays the 202', async () => {
    const options = { mode: 'live', idempotencyKey: 'k' } as const;
    const body = { amount: 1_047, external_ref: 'r' };
    const first = createCard(partner, body, options);
    while ((await claims()).length === 0);

    expectError(await createCard(partner, body, options), 'idempotency_in_flight');
    expectError(await createCard(partner, { ...body, amount: 1 }, options), 'idempotency_conflict');
    // Longer than a lease lasts that nobody renews.
    await sleep(6_000);
    expectError(await createCard(partner, body, options), 'idempotency_in_flight');
    await stack.startWorker();

    const answer = await first;
    assert.equal(answer.status, 202, answer.text);
    const replayed = await createCard(partner, body, options);
    assert.deepEqual([replayed.status, replayed.text], [202, answer.text]);
    assert.equal((await claims()).length, 1);
  });

  it('makes others wait in test mode, which then get its answer or 422', async () => {
    const { id: cardId } = (await createCard(partner, { amount: 1_000 })).json;
    for (const [path, body, status] of [
      ['/cards', { amount: 1_000, external_ref: 'r' }, 201],
      [`/cards/${cardId}/topups`, { amount: 1_000 }, 201],
      ['/test/credit', { amount: 1_000 }, 201],
      [`/cards/${cardId}/freeze`, undefined, 200],
      [`/cards/${cardId}/block`, undefined, 200],
    ] as const) {
      const holder = new pg.Client(ownerUrlOf(stack.config.databaseUrl));
      await holder.connect();
      await holder.query('BEGIN');
      await holder.query('SELECT FROM account_usage WHERE partner_id = $1 FOR UPDATE', [partner.id]);
      await holder.query('SELECT FROM card WHERE id = $1 FOR UPDATE', [cardId]);
      const idempotencyKey = path;
      const same = Array.from({ length: 3 }, () => partner.call('POST', path, { body, idempotencyKey }));
      const other = partner.call('POST', path === '/test/credit' ? '/cards' : '/test/credit', {
        body: path === '/test/credit' ? { amount: 1_000, external_ref: 's' } : { amount: 2_000 },
        idempotencyKey,
      });
      const waiting = () =>
        asOwner<{ n: number }>(
          stack,
          `SELECT count(*)::int AS n FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
      while ((await waiting())[0]?.n !== 4) await sleep(20);
      await holder.end();

      const answers = await Promise.all([...same, other]);
      const ran = answers.filter((answer) => answer.headers.get('idempotent-replayed') === null);
      const won = ran.filter((answer) => answer.status < 400);
      assert.equal(won.length, 1, `${path}: ${answers.map(({ text }) => text).join('\n')}`);
      for (const answer of answers) {
        if (answer.status === 422) expectError(answer, 'idempotency_conflict');
        else assert.equal(answer.text, won[0]?.text);
      }
      // Whichever of the two came first.
      const conflicts = answers.filter((answer) => answer.status === 422).length;
      assert.equal(conflicts, won[0] === answers[3] ? 3 : 1);
      if (won[0] !== answers[3]) assert.equal(won[0]?.status, status);
    }
  });
});
