import assert from 'node:assert/strict';
import { once } from 'node:events';
import pg from 'pg';
import { DEPOSIT_CHANGED } from '../../../db/notifications.ts';
import { expectError, expectReplay } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { TEST_TRON } from '../../support/deposits/seed-deposits.ts';
import { fundedPartner } from '../../support/money.ts';
import { asOwner, ownerUrlOf } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

describe('an Idempotency-Key on POST /funding/deposit-address', function () {
  this.timeout(120_000);
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    // Without a worker a live card's request runs until its waiting time is over, which is longer than the test.
    stack = await startTestStack({ tron: TEST_TRON, cardCreationWaitMs: 60_000 }, { worker: false });
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, 100_000);
  });
  after(() => stack.stop());

  const post = (amount: number, idempotencyKey?: string) =>
    partner.call('POST', '/funding/deposit-address', {
      ...{ mode: 'live', body: { amount } },
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    });
  const deposits = async () =>
    (await partner.call('GET', '/funding/deposits?limit=100', { mode: 'live' })).json.data;
  const connect = async () => {
    const client = new pg.Client(ownerUrlOf(stack.config.databaseUrl));
    await client.connect();
    return client;
  };

  it('replays the instruction byte for byte, even when the deposit has changed since', async () => {
    const first = await post(2_500, 'k');
    assert.equal(first.status, 201, first.text);
    await asOwner(stack, `UPDATE deposit SET status = 'expired' WHERE id = $1`, [first.json.id]);
    expectReplay(await post(2_500, 'k'), first);
    const reordered = await partner.call('POST', '/funding/deposit-address', {
      ...{ mode: 'live', body: '{ "amount" :\n2500 }', idempotencyKey: 'k' },
    });
    expectReplay(reordered, first);
    assert.deepEqual(
      (await deposits()).map(({ id, status }: { id: string; status: string }) => [id, status]),
      [[first.json.id, 'expired']],
    );
  });

  it('is free after the 400 of a card whose process died before it freed the key', async () => {
    await asOwner(
      stack,
      `INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, fingerprint, request_id, lease_expires_at,
         response_status, response_body)
       VALUES ('claim_' || $1, $1, 'live', 'k', 'create_card', 'f', 'req_1', now(), 400, 'sealed')`,
      [partner.id],
    );
    const answer = await post(2_500, 'k');
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.get('idempotent-replayed'), null);
  });

  it('is refused with 503, and no operation, while a card keeps a 400 under it that is about to be forgotten', async () => {
    await asOwner(
      stack,
      `INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, fingerprint, request_id, lease_expires_at,
         response_status, response_body)
       VALUES ('claim_' || $1, $1, 'live', 'k', 'create_card', 'f', 'req_1', now() + interval '1 day', 400, 'sealed')`,
      [partner.id],
    );
    const answer = await post(2_500, 'k');
    expectError(answer, 'unavailable');
    assert.equal(answer.headers.get('operation-id'), null);
    await asOwner(stack, 'DELETE FROM idempotency_claim WHERE partner_id = $1', [partner.id]);
    assert.equal((await post(2_500, 'k')).status, 201);
  });

  it('makes one deposit for 20 simultaneous requests, which get its answer and its operation', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(2_500, 'k')));
    const [made, ...others] = answers.filter(({ headers }) => headers.get('idempotent-replayed') === null);
    assert.deepEqual([made?.status, others], [201, []]);
    const operation = made?.headers.get('operation-id');
    for (const answer of answers)
      assert.deepEqual([answer.text, answer.headers.get('operation-id')], [made?.text, operation]);
    assert.deepEqual(await deposits(), [made?.json]);
    const { status } = await partner.call('GET', `/operations/${operation}`, { mode: 'live' });
    assert.equal(status, 200);
  });

  it('is optional, and each request without one gets another address', async () => {
    const answers = [await post(2_500), await post(2_500), await post(2_500, '')];
    assert.equal(new Set(answers.map(({ json }) => json.address)).size, 3);
    assert.equal((await deposits()).length, 3);
    assert.deepEqual(
      await asOwner(stack, 'SELECT FROM idempotency_claim WHERE partner_id = $1', [partner.id]),
      [],
    );
  });

  it('has a second request wait while its first one runs, which then gets its answer', async () => {
    const holder = await connect();
    await holder.query('BEGIN');
    await holder.query('LOCK TABLE deposit IN SHARE MODE');
    const both = [post(2_500, 'k'), post(2_500, 'k')];
    await until('both requests wait', async () => {
      const { rows } = await holder.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return rows.length === 2;
    });
    await holder.query('ROLLBACK');
    await holder.end();
    const answers = [];
    // On a busy machine one can have waited for longer than a lock is waited for: then it has made nothing.
    for (const waited of await Promise.all(both))
      answers.push(waited.status === 503 ? await post(2_500, 'k') : waited);
    const made = await deposits();
    assert.equal(made.length, 1);
    for (const answer of answers) assert.deepEqual([answer.status, answer.json], [201, made[0]]);
  });

  it('gets 422 for another amount or endpoint, whichever came first', async () => {
    const first = await post(2_500, 'k');
    expectError(await post(2_501, 'k'), 'idempotency_conflict');
    const card = await createCard(partner, { amount: 1_000 }, { mode: 'live', idempotencyKey: 'k' });
    expectError(card, 'idempotency_conflict');
    expectReplay(await post(2_500, 'k'), first);

    const refused = await createCard(partner, { amount: 1 }, { idempotencyKey: 'k' });
    expectError(refused, 'limit_exceeded');
    assert.equal((await deposits()).length, 1);
  });

  it('leaves a card alone that is being made with the same key', async () => {
    const card = createCard(partner, { amount: 1_000 }, { mode: 'live', idempotencyKey: 'k' });
    await until('the key is claimed', async () => {
      const claims = 'SELECT FROM idempotency_claim WHERE partner_id = $1';
      return (await asOwner(stack, claims, [partner.id])).length === 1;
    });
    expectError(await post(1_000, 'k'), 'idempotency_conflict');
    assert.deepEqual(await deposits(), []);
    await stack.startWorker();
    const { status, text } = await card;
    assert.equal(status, 201, text);
    expectError(await post(1_000, 'k'), 'idempotency_conflict');
    await stack.stopWorker();
  });

  it('makes one deposit for each account that uses it', async () => {
    const [first] = [await post(2_500, 'k')];
    partner = await stack.createPartner();
    const second = await post(2_500, 'k');
    assert.deepEqual([second.status, second.headers.get('idempotent-replayed')], [201, null]);
    assert.notEqual(second.json.address, first?.json.address);
  });

  it('lets workers know of a new deposit after its commit', async () => {
    const listener = await connect();
    await listener.query(`LISTEN ${DEPOSIT_CHANGED}`);
    const told = once(listener, 'notification');
    await post(2_500, 'k');
    await told;
    await listener.end();
  });
});
