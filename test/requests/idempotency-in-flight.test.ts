import assert from 'node:assert/strict';
import { once } from 'node:events';
import pg from 'pg';
import { DEPOSIT_CHANGED } from '../../platform/db/notifications.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { untilAnswered } from '../support/crash/operations.ts';
import { TEST_TRON } from '../support/deposits/seed-deposits.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner, ownerUrlOf } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

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
  const address = (amount: number) =>
    partner.call('POST', '/funding/deposit-address', { mode: 'live', body: { amount }, idempotencyKey: 'k' });
  const deposits = async () => (await partner.call('GET', '/funding/deposits', { mode: 'live' })).json.data;
  const connect = async () => {
    const client = new pg.Client(ownerUrlOf(stack.config.databaseUrl));
    await client.connect();
    return client;
  };

  it('gets 409 in live mode for as long as the request runs, then its response, and stands for nothing else', async () => {
    const options = { mode: 'live', idempotencyKey: 'k' } as const;
    const first = createCard(partner, CARD, options);
    await until('the key is claimed', async () => (await claims()).length === 1);
    expectError(await createCard(partner, CARD, options), 'idempotency_in_flight');
    expectError(await createCard(partner, { ...CARD, amount: 1 }, options), 'idempotency_conflict');
    expectError(await address(1_000), 'idempotency_conflict');

    // As if nobody had renewed the lease for as long as it lasts.
    await asOwner(stack, 'UPDATE idempotency_claim SET lease_expires_at = now() WHERE partner_id = $1', [
      partner.id,
    ]);
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
    assert.deepEqual(await deposits(), []);
  });

  it('makes others wait for a request that is one transaction, which then get its response or 422', async () => {
    const { id: cardId } = (await createCard(partner, { amount: 1_000 })).json;
    const usual = { elsewhere: '/test/credit', other: { amount: 2_000 } } as const;
    for (const { path, body, elsewhere, other } of [
      { ...usual, path: '/cards', body: { amount: 1_000, external_ref: 'r' } },
      { ...usual, path: `/cards/${cardId}/topups`, body: { amount: 1_000 } },
      { ...usual, path: `/cards/${cardId}/freeze`, body: undefined },
      { ...usual, path: `/cards/${cardId}/block`, body: undefined },
      {
        path: '/test/credit',
        body: { amount: 1_000 },
        elsewhere: '/cards',
        other: { amount: 1_000, external_ref: 's' },
      },
    ] as const) {
      const holder = await connect();
      await holder.query('BEGIN');
      await holder.query('SELECT FROM account_usage WHERE partner_id = $1 FOR UPDATE', [partner.id]);
      await holder.query('SELECT FROM card WHERE id = $1 FOR UPDATE', [cardId]);
      const ask = (to: string, asked: unknown) =>
        // Who has waited for a lock for too long has done nothing, and asks again.
        untilAnswered(() => partner.call('POST', to, { body: asked, idempotencyKey: path }));
      const asked = [...Array.from({ length: 3 }, () => ask(path, body)), ask(elsewhere, other)];
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

  describe('in a process that has found its request invalid', () => {
    const leaveInvalid = (leaseExpiresAt: string) =>
      asOwner(
        stack,
        `INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, fingerprint, request_id, lease_expires_at,
           response_status, response_body)
         VALUES ('claim_' || $1, $1, 'live', 'k', 'create_card', 'f', 'req_1', ${leaseExpiresAt}, 400, 'sealed')`,
        [partner.id],
      );

    it('is free for a deposit address if the process died before it freed the key', async () => {
      await leaveInvalid('now()');
      const answer = await address(2_500);
      assert.equal(answer.status, 201, answer.text);
      assert.equal(answer.headers.get('idempotent-replayed'), null);
    });

    it('is refused with 503, and no operation, while the process may be about to free it', async () => {
      await leaveInvalid(`now() + interval '1 day'`);
      const answer = await address(2_500);
      expectError(answer, 'unavailable');
      assert.equal(answer.headers.get('operation-id'), null);
      await asOwner(stack, 'DELETE FROM idempotency_claim WHERE partner_id = $1', [partner.id]);
      assert.equal((await address(2_500)).status, 201);
    });
  });
});

describe('POST /funding/deposit-address', () => {
  it('gives each request without a key another address, and lets workers know after its commit', async () => {
    const stack = await sharedStack('api');
    const partner = await stack.createPartner();
    const listener = new pg.Client(ownerUrlOf(stack.config.databaseUrl));
    await listener.connect();
    await listener.query(`LISTEN ${DEPOSIT_CHANGED}`);
    const told = once(listener, 'notification');
    const ask = () =>
      partner.call('POST', '/funding/deposit-address', { mode: 'live', body: { amount: 2_500 } });
    const answers = [await ask(), await ask()];
    await told;
    await listener.end();
    assert.equal(new Set(answers.map(({ json }) => json.address)).size, 2);
  });
});
