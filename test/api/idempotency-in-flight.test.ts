import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { asOwner } from './support/as-owner.ts';
import { expectError } from './support/expect-error.ts';
import { balanceOf, createCard, fundedPartner } from './support/prepare.ts';
import { sharedStack } from './support/shared-stack.ts';

/** One of them ran; each of the others was told so or got its very answer. @returns the answer of the one */
function expectOneRun(answers: Answer[]): Answer {
  const ran = answers.filter(
    (answer) => answer.status < 400 && answer.headers.get('idempotent-replayed') === null,
  );
  assert.equal(ran.length, 1, 'not exactly one request ran');
  const [first] = ran as [Answer];
  for (const answer of answers) {
    if (answer.status === 409) expectError(answer, 'idempotency_in_flight');
    else assert.equal(answer.text, first.text);
  }
  return first;
}

describe('many requests with one Idempotency-Key', () => {
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
    it(`make one card in ${mode} mode, of 20 at once`, async () => {
      const body = { amount: 1_000, external_ref: 'r' };
      const answers = await twenty(() => createCard(partner, body, { mode, idempotencyKey: 'k' }));
      const first = expectOneRun(answers);
      assert.equal(first.status, 201, first.text);
      const { json } = await partner.call('GET', '/cards', { mode });
      assert.deepEqual(json.data, [first.json]);
      assert.deepEqual(await balanceOf(partner, mode), [98_850, 0, 98_850]);
    });
  }

  it('make one credit, of 20 at once', async () => {
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

  it('make one refusal, of 20 at once: the others are told to wait or get the very same', async () => {
    const answers = await twenty(() =>
      createCard(partner, { amount: 1_000_000, external_ref: 'r' }, { idempotencyKey: 'k' }),
    );
    const refusals = answers.filter((answer) => answer.status !== 409);
    assert.ok(refusals.length >= 1);
    for (const answer of answers) {
      if (answer.status === 409) expectError(answer, 'idempotency_in_flight');
      else assert.equal(answer.text, refusals[0]?.text);
    }
    assert.equal(refusals[0]?.json.error.code, 'insufficient_funds');
    assert.equal(refusals.filter((answer) => answer.headers.get('idempotent-replayed') === null).length, 1);
    assert.deepEqual(await balanceOf(partner), [100_000, 0, 100_000]);
  });
});

describe('while a request runs', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    // Without a worker a request runs for as long as it is willing to wait, which is longer than the test.
    stack = await startTestStack({ cardCreationWaitMs: 60_000 }, { worker: false });
    partner = await fundedPartner(stack, 100_000);
  });
  afterEach(() => stack.stopWorker());
  after(() => stack.stop());

  const cases = [
    ['test', 1_000, 201, 0],
    // Longer than a lease lasts that nobody renews.
    ['live', 1_047, 202, 6_000],
  ] as const;
  for (const [mode, amount, status, runningMs] of cases) {
    it(`its key gets 409, another request under it 422, and then ${status} is replayed (${mode} mode)`, async () => {
      const options = { mode, idempotencyKey: 'k' };
      const body = { amount, external_ref: 'r' };
      const first = createCard(partner, body, options);
      const claims = () =>
        asOwner(stack, 'SELECT FROM idempotency_claim WHERE partner_id = $1 AND mode = $2', [
          partner.id,
          mode,
        ]);
      while ((await claims()).length === 0);

      expectError(await createCard(partner, body, options), 'idempotency_in_flight');
      expectError(await createCard(partner, { ...body, amount: 1 }, options), 'idempotency_conflict');
      await sleep(runningMs);
      expectError(await createCard(partner, body, options), 'idempotency_in_flight');
      await stack.startWorker();

      const answer = await first;
      assert.equal(answer.status, status, answer.text);
      const replayed = await createCard(partner, body, options);
      assert.deepEqual([replayed.status, replayed.text], [status, answer.text]);
      assert.equal((await claims()).length, 1);
    });
  }
});
