import assert from 'node:assert/strict';
import fc from 'fast-check';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import type { Mode } from '../../domain/mode.ts';
import { query } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { post } from '../support/api/post.ts';
import { authorizedCard } from '../support/authorizations.ts';
import { createCard, settledCard } from '../support/cards.ts';
import { assertLedgerClean, balanceOf, FUNDS_CENTS, fundedPartner, priceOf } from '../support/money.ts';
import { connectTo, ownerUrlOf } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe('the balance alert', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });

  /** It needs no Idempotency-Key, and one that is sent changes nothing. */
  const put = (body: unknown, mode: Mode = 'test') =>
    partner.call('PUT', '/balance/alert', { body, mode, idempotencyKey: 'one' });
  const get = async (mode: Mode = 'test') => (await partner.call('GET', '/balance/alert', { mode })).json;
  const set = async (threshold: number | null, mode: Mode = 'test') => {
    const { status, json, text } = await put({ threshold }, mode);
    assert.equal(status, 200, text);
    return json;
  };
  const adjust = (amountCents: number, mode: Mode = 'test') =>
    adjustBalance(stack.operator, { partnerId: partner.id, mode, amountCents, reason: 'a test', key: null });

  /** The alert's events, oldest first. */
  // biome-ignore lint/suspicious/noExplicitAny: events as the API returns them.
  async function events(mode: Mode = 'test'): Promise<any[]> {
    const { json } = await partner.call('GET', '/events?limit=100', { mode });
    return json.data.filter(({ type }: { type: string }) => type.startsWith('balance.')).toReversed();
  }
  /** Each as its type, what was available and the threshold. */
  const told = async (mode: Mode = 'test') =>
    (await events(mode)).map(({ type, data }) => [type, data.balance.available, data.threshold]);

  it('has no threshold before one is set, and then the same until it is set again, in each mode', async () => {
    assert.deepEqual(await get(), { object: 'balance_alert', threshold: null, mode: 'test' });
    assert.deepEqual(await set(5_000), { object: 'balance_alert', threshold: 5_000, mode: 'test' });
    assert.deepEqual(await get(), { object: 'balance_alert', threshold: 5_000, mode: 'test' });
    assert.deepEqual(await get('live'), { object: 'balance_alert', threshold: null, mode: 'live' });
    assert.equal((await set(null)).threshold, null);
    assert.equal((await get()).threshold, null);
    assert.equal((await set(Number.MAX_SAFE_INTEGER)).threshold, Number.MAX_SAFE_INTEGER);
  });

  it('waits for an advance of the test clock that is under way, as adjustments do, and is dated after it', async () => {
    const owner = await connectTo(ownerUrlOf(stack.config.databaseUrl));
    const types = [];
    for (const [days, change] of [
      [1, () => set(FUNDS_CENTS + 1)],
      [2, () => adjust(1)],
    ] as const) {
      await owner.query('BEGIN');
      await owner.query('SELECT lock_test_clock_alone($1)', [partner.id]);
      const changed = change();
      await until('it waits for the clock', async () => {
        const { rows } = await owner.query(
          `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        );
        return rows.length > 0;
      });
      await owner.query(
        `INSERT INTO test_clock_advance (partner_id, advanced_at, seconds_before, offset_seconds, shows)
         SELECT $1, at, ($2 - 1) * 86400, $2 * 86400, at + $2 * interval '1 day'
         FROM (SELECT date_trunc('milliseconds', clock_timestamp()) AS at) now`,
        [partner.id, days],
      );
      await owner.query('COMMIT');
      await changed;
      const event = (await events()).at(-1);
      types.push(event.type);
      assert.ok(Date.parse(event.created) - Date.now() > days * 86_400_000 - 3_600_000);
    }
    await owner.end();
    assert.deepEqual(types, ['balance.low', 'balance.recovered']);
  });

  it('tells of every kind of change that crosses the threshold, with the balance that it left', async () => {
    const [used, blocked] = [await authorizedCard(partner, 5_000), await authorizedCard(partner, 5_000)];
    const available = async () => (await balanceOf(partner))[0] ?? 0;
    const tells = async (type: 'balance.low' | 'balance.recovered', change: () => Promise<unknown>) => {
      const before = await available();
      await set(type === 'balance.low' ? before : before + 1);
      const { length } = await events();
      await change();
      await until(`it tells of ${type}`, async () => (await events()).length > length);
      const [event, ...others] = (await events()).slice(length);
      assert.deepEqual(
        [event.type, event.data.balance.available, others],
        [type, await available(), []],
        `${change}`,
      );
    };
    await tells('balance.low', () => used.simulate({ type: 'purchase', amount: 1_000 }));
    await tells('balance.recovered', () => post(partner, `/cards/${used.id}/withdrawals`, { amount: 2_000 }));
    await tells('balance.low', () => used.forceCapture(3_000));
    await tells('balance.recovered', () => blocked.change('block'));
    await tells('balance.recovered', () => post(partner, '/test/deposits', { amount: 1_000 }));
    await tells('balance.low', () => used.simulate({ type: 'decline', amount: 1_000 }));
    await tells('balance.recovered', () => blocked.simulate({ type: 'refund', amount: 100, force: true }));
  });

  it('tells one mode nothing of the other', async () => {
    await set(FUNDS_CENTS, 'live');
    await adjust(-100, 'test');
    assert.deepEqual(await told('test'), []);
    assert.deepEqual(await told('live'), []);
    await adjust(-100, 'live');
    assert.deepEqual(await told('live'), [['balance.low', FUNDS_CENTS - 100, FUNDS_CENTS]]);
    assert.deepEqual(await told('test'), []);
  });

  it('counts money on hold as gone, and a released hold as back', async () => {
    await set(FUNDS_CENTS, 'live');
    // It stays pending, and then fails.
    const { status, json } = await createCard(partner, { amount: 1_043 }, { mode: 'live' });
    assert.equal(status, 202);
    assert.equal((await settledCard(partner, json.id)).status, 'failed');
    const price = priceOf(1_043);
    assert.deepEqual(
      (await events('live')).map(({ type, data: { balance } }) => [type, balance.available, balance.held]),
      [
        ['balance.low', FUNDS_CENTS - price, price],
        ['balance.recovered', FUNDS_CENTS, 0],
      ],
    );
  });

  it('sends nothing for what is refused, or rolled back', async () => {
    await set(FUNDS_CENTS);
    assert.equal((await createCard(partner, { amount: FUNDS_CENTS })).status, 402);
    const rolledBack = transaction(stack.orm, async (tx) => {
      await query(tx, 'SELECT ledger.set_alert($1, $2, $3)', [partner.id, 'test', FUNDS_CENTS + 1]);
      throw new Error('rolled back');
    });
    await assert.rejects(rolledBack, /rolled back/);
    assert.deepEqual(await told(), []);
    assert.equal((await get()).threshold, FUNDS_CENTS);
  });

  it('sends one event for a crossing, with the balance right then, however many changes happen at once', async () => {
    await set(FUNDS_CENTS - 5 * priceOf(1_000));
    const made = await Promise.all(Array.from({ length: 12 }, () => createCard(partner, { amount: 1_000 })));
    assert.ok(made.every(({ status }) => status === 201));
    const [event, ...others] = await events();
    const available = FUNDS_CENTS - 6 * priceOf(1_000);
    assert.equal(event.type, 'balance.low');
    assert.deepEqual(event.data, {
      balance: { object: 'balance', mode: 'test', currency: 'USD', available, held: 0, total: available },
      threshold: FUNDS_CENTS - 5 * priceOf(1_000),
    });
    assert.deepEqual(others, []);
  });

  it('sends, for any changes and thresholds, exactly the crossings', async () => {
    const change = fc.oneof(
      fc.record({ add: fc.integer({ min: -60, max: 60 }).filter((cents) => cents !== 0) }),
      fc.record({ threshold: fc.option(fc.integer({ min: 1, max: 120 })) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 15 }), async (changes) => {
        // It can be set before anything has touched the balance.
        partner = await stack.createPartner();
        const expected: unknown[] = [];
        let available = 0;
        let alert: number | null = null;
        let isLow = false;
        for (const one of changes) {
          if ('threshold' in one) {
            alert = one.threshold;
            if (alert === null) isLow = false;
            await set(alert);
          } else if (available + one.add >= 0) {
            available += one.add;
            await adjust(one.add);
          }
          if (alert === null || isLow === available < alert) continue;
          isLow = available < alert;
          expected.push([isLow ? 'balance.low' : 'balance.recovered', available, alert]);
        }
        assert.deepEqual(await told(), expected);
      }),
      { numRuns: 15 },
    );
    await assertLedgerClean(stack, partner);
  });
});
