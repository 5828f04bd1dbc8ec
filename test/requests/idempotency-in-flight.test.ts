import assert from 'node:assert/strict';
import { once } from 'node:events';
import { DEPOSIT_CHANGED } from '../../platform/db/notifications.ts';
import { issueCardWorkflowId } from '../../workflows/messages.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard, readCardRow } from '../support/cards.ts';
import { untilAnswered } from '../support/crash/operations.ts';
import { TEST_TRON } from '../support/deposits/seed-deposits.ts';
import { assertLedgerClean, balanceOf, fundedPartner, priceOf } from '../support/money.ts';
import { asOwner, connectTo, ownerUrlOf } from '../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { untilStarted } from '../support/workflows.ts';

const CARD = { amount: 1_047, external_ref: 'r' };

describe('an Idempotency-Key whose request is running', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    // Without a worker a request runs until its waiting time is over, which is longer than the test.
    stack = await startTestStack({ tron: TEST_TRON, cardCreationWaitMs: 3_600_000 }, { worker: false });
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, 100_000);
  });
  afterEach(() => stack.stopWorker());
  after(() => stack.stop());

  const claims = (where = '') =>
    asOwner(stack, `SELECT FROM idempotency_claim WHERE partner_id = $1 ${where}`, [partner.id]);
  const expireLease = () =>
    asOwner(stack, 'UPDATE idempotency_claim SET lease_expires_at = now() WHERE partner_id = $1', [
      partner.id,
    ]);
  const address = (amount: number) =>
    partner.call('POST', '/funding/deposit-address', { mode: 'live', body: { amount }, idempotencyKey: 'k' });

  it('gets 409 in live mode for as long as the request runs, then its response, and stands for nothing else', async () => {
    const options = { mode: 'live', idempotencyKey: 'k' } as const;
    const first = createCard(partner, CARD, options);
    await until('the key is claimed', async () => (await claims()).length === 1);
    expectError(await createCard(partner, CARD, options), 'idempotency_in_flight');
    expectError(await createCard(partner, { ...CARD, amount: 1 }, options), 'idempotency_conflict');
    expectError(await address(1_000), 'idempotency_conflict');

    // As if nobody had renewed the lease for as long as it lasts.
    await expireLease();
    await until('its process has renewed the lease', async () => {
      return (await claims('AND lease_expires_at > now()')).length === 1;
    });
    expectError(await createCard(partner, CARD, options), 'idempotency_in_flight');

    await stack.startWorker();
    const answer = await first;
    assert.equal(answer.status, 202, answer.text);
    const replayed = await createCard(partner, CARD, options);
    assert.deepEqual([replayed.status, replayed.text], [202, answer.text]);
    expectError(await address(1_000), 'idempotency_conflict');
    assert.equal((await claims()).length, 1);
    const deposits = await partner.call('GET', '/funding/deposits', { mode: 'live' });
    assert.deepEqual(deposits.json.data, []);
  });

  for (const [digits, answered, status] of [
    [0, 201, 'active'],
    [47, 202, 'funding_pending'],
  ] as const) {
    it(`gets ${answered}, and no money back, although its workflow is cancelled before it has begun, for an amount ending in ${digits}`, async () => {
      const body = { ...CARD, amount: 10_000 + digits };
      const options = { mode: 'live', idempotencyKey: 'k' } as const;
      const answer = createCard(partner, body, options);
      const operation = await until('the operation has begun', async () => {
        const { json } = await partner.call('GET', '/operations', { mode: 'live' });
        return json.data[0];
      });
      assert.deepEqual(
        [operation.status, operation.response_status, operation.waits_for],
        ['in_progress', null, 'network'],
      );
      const early = await createCard(partner, body, options);
      expectError(early, 'idempotency_in_flight');
      assert.equal(early.headers.get('operation-id'), operation.id);
      const workflow = stack.client.workflow.getHandle(issueCardWorkflowId(operation.resource.id));
      await untilStarted(workflow);
      await workflow.cancel();
      await stack.startWorker();

      const { status: code, text, json, headers } = await answer;
      assert.deepEqual([code, headers.get('operation-id')], [answered, operation.id], text);
      assert.equal((await readCardRow(stack, json.id))?.status, status);
      const left = 100_000 - priceOf(body.amount);
      const total = status === 'active' ? left : 100_000;
      assert.deepEqual(await balanceOf(partner, 'live'), [left, total - left, total]);
      await assertLedgerClean(stack, partner);
    });
  }

  it('makes others wait for a request that is one transaction, which then get its response or 422', async () => {
    const { id: cardId } = (await createCard(partner, { amount: 1_000 })).json;
    for (const [path, body] of [
      ['/cards', { amount: 1_000, external_ref: 'r' }],
      [`/cards/${cardId}/topups`, { amount: 1_000 }],
      [`/cards/${cardId}/freeze`, undefined],
      [`/cards/${cardId}/block`, undefined],
      ['/test/credit', { amount: 1_000 }],
    ] as const) {
      const elsewhere = path === '/test/credit' ? `/cards/${cardId}/topups` : '/test/credit';
      const holder = await connectTo(ownerUrlOf(stack.config.databaseUrl));
      await holder.query('BEGIN');
      await holder.query('SELECT FROM account_usage WHERE partner_id = $1 FOR UPDATE', [partner.id]);
      await holder.query('SELECT FROM card WHERE id = $1 FOR UPDATE', [cardId]);
      const ask = (to: string, asked: unknown) =>
        // Who has waited for a lock for too long has done nothing, and asks again.
        untilAnswered(() => partner.call('POST', to, { body: asked, idempotencyKey: path }));
      const asked = [...Array.from({ length: 3 }, () => ask(path, body)), ask(elsewhere, { amount: 2_000 })];
      await until(`all wait at ${path}`, async () => {
        // Not by the holder: a transaction goes on seeing the connections that it saw at first.
        const rows = await asOwner(
          stack,
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        return rows.length === asked.length;
      });
      await holder.end();

      const answers = await Promise.all(asked);
      const won = answers.filter(
        ({ status, headers }) => status < 400 && headers.get('idempotent-replayed') === null,
      );
      assert.equal(won.length, 1, `${path}: ${answers.map(({ text }) => text).join('\n')}`);
      for (const answer of answers) {
        if (answer.status === 422) expectError(answer, 'idempotency_conflict');
        else assert.equal(answer.text, won[0]?.text);
      }
      // Whichever of the two came first.
      const conflicts = answers.filter(({ status }) => status === 422).length;
      assert.equal(conflicts, won[0] === answers[3] ? 3 : 1);
    }
  });

  it('is refused with 503 while a process may be about to free it, and free once that process has died', async () => {
    await asOwner(
      stack,
      `INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, fingerprint, request_id, lease_expires_at,
         response_status, response_body)
       VALUES ('claim_' || $1, $1, 'live', 'k', 'create_card', 'f', 'req_1', now() + interval '1 minute', 400, 'sealed')`,
      [partner.id],
    );
    const waiting = await address(2_500);
    expectError(waiting, 'unavailable');
    assert.equal(waiting.headers.get('operation-id'), null);
    await expireLease();
    const answer = await address(2_500);
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.get('idempotent-replayed'), null);
  });

  it('is not needed for a deposit address, of which workers hear after its commit', async () => {
    await using listener = await connectTo(ownerUrlOf(stack.config.databaseUrl));
    await listener.query(`LISTEN ${DEPOSIT_CHANGED}`);
    const told = once(listener, 'notification');
    const body = { amount: 2_500 };
    const { status } = await partner.call('POST', '/funding/deposit-address', { mode: 'live', body });
    assert.equal(status, 201);
    await told;
  });
});
