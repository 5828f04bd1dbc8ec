import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mock } from 'node:test';
import fc from 'fast-check';
import type { Tenant } from '../../domain/mode.ts';
import { NOWHERE } from '../../domain/payment.ts';
import { completeControls, type LimitInterval } from '../../domain/spending-controls.ts';
import { checkBooks } from '../../exports/check-books.ts';
import { simulateOnAuthorization, simulateOnCard } from '../../payments/simulate.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { settlementOf, settleOne } from '../support/commands/cards.ts';
import { keyedRequest, openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { untilWaiting } from '../support/commands/until-waiting.ts';
import { propertyRuns } from '../support/property-runs.ts';

const DAY_MS = 86_400_000;
const INTERVALS = ['daily', 'weekly', 'monthly', 'yearly', 'all_time'] as const;

/** The last moments of a year, of a week, of a month, of a leap day, and a day like others. */
const STARTS = [
  '2026-12-31T23:59:59.990Z',
  '2027-01-03T23:59:59.990Z',
  '2027-01-31T23:59:59.990Z',
  '2028-02-29T23:59:59.990Z',
  '2027-06-16T12:00:00.000Z',
];
const step = fc.record({
  kind: fc.constantFrom(
    ...(['authorize', 'authorize', 'purchase', 'purchase', 'refund', 'forceCapture'] as const),
    ...(['increment', 'capture', 'captureSome', 'reverse', 'expire'] as const),
  ),
  cents: fc.integer({ min: 1, max: 100 }),
  category: fc.constantFrom(null, '5812', '5411'),
  /** Which of the authorizations so far. */
  which: fc.nat(20),
  /** A little, to an interval's end or just short of it, or over it; a process's clock can be behind, too. */
  laterMs: fc.constantFrom(0, 1, 9, 10, 11, 3_600_000, DAY_MS, 7 * DAY_MS, 31 * DAY_MS, -5, -20),
});
const limit = fc.record({
  amount: fc.integer({ min: 50, max: 400 }),
  interval: fc.constantFrom(...INTERVALS, 'per_authorization'),
  categories: fc.constantFrom<string[] | null>(null, ['5812'], ['5812', '5411']),
});
type Limit = { amount: number; interval: LimitInterval; categories: string[] | null };

/** Something that counts, as a plain list has it: the model shares no code with the service. */
interface Counted {
  /** What follows the prefix of its id: the order of creation. */
  item: string;
  at: number;
  category: string | null;
  cents: number;
}

const itemOf = (id: string) => id.slice(id.indexOf('_') + 1);

/** Longer than any history here: what is overdue ends with the next booking. */
const NEVER_MS = 36_500 * DAY_MS;

function startOf(interval: LimitInterval, at: number): number {
  const date = new Date(at);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  if (interval === 'daily') return Date.UTC(year, month, day);
  if (interval === 'weekly') return Date.UTC(year, month, day) - ((date.getUTCDay() + 6) % 7) * DAY_MS;
  if (interval === 'monthly') return Date.UTC(year, month, 1);
  return interval === 'yearly' ? Date.UTC(year, 0, 1) : Number.NEGATIVE_INFINITY;
}

function sumOf({ interval, categories }: Limit, at: number, counted: readonly Counted[]): number {
  return counted
    .filter((one) => startOf(interval, one.at) === startOf(interval, at))
    .filter(({ category }) => categories === null || (category !== null && categories.includes(category)))
    .toSorted((one, other) => (one.item < other.item ? -1 : 1))
    .reduce((spent, { cents }) => Math.max(0, spent + cents), 0);
}

describe('counters of spending', () => {
  let commands: TestCommands;
  let tenant: Tenant;
  before(async () => {
    commands = await openCommands();
    tenant = { partnerId: await commands.createFundedPartner(9_000_000_000), mode: 'test' };
  });
  afterEach(() => mock.timers.reset());
  after(() => commands.close());

  const controlled = async (limits: readonly Limit[], accountLimits: readonly Limit[] = []) => {
    const cardId = await commands.createActiveCard(tenant.partnerId, 'test', 10_000);
    const controls = (of: readonly Limit[]) =>
      of.length === 0 ? null : JSON.stringify(completeControls({ spending_limits: [...of] }));
    await commands.owner.query('UPDATE card SET spending_controls = $2 WHERE id = $1', [
      cardId,
      controls(limits),
    ]);
    await commands.owner.query('UPDATE partner SET spending_controls = $2 WHERE id = $1', [
      tenant.partnerId,
      controls(accountLimits),
    ]);
    return cardId;
  };

  type Asked = Parameters<typeof keyedRequest>[0];
  type OnCard = Pick<Parameters<typeof simulateOnCard>[2]['message'], 'type' | 'amountCents'>;
  type OnAuthorization = Omit<Parameters<typeof simulateOnAuthorization>[3], 'messageId' | 'ttlMs'>;

  /** What merchants do with a card, each in the transaction that the service makes of it. */
  const uses = (cardId: string) => {
    const { context } = commands;
    const request = (operation: Asked) => ({ ...keyedRequest(operation, cardId, {}, tenant), key: null });
    const sent = () => ({ messageId: `simulated/${randomUUID()}`, ttlMs: NEVER_MS });
    const of = (category: string | null) => ({ ...NOWHERE, categoryCode: category });
    const onCard = async (operation: Asked, said: OnCard, category: string | null) => {
      const message = { ...said, id: `simulated/${randomUUID()}`, isFinal: true, merchant: of(category) };
      const simulated = { message, networkPaymentId: null, ttlMs: NEVER_MS };
      return JSON.parse((await simulateOnCard(context, request(operation), simulated)).response.body);
    };
    const onAuthorization = async (operation: Asked, id: string, said: OnAuthorization) => {
      const message = { ...said, ...sent() };
      const { response } = await simulateOnAuthorization(context, request(operation), id, message);
      return JSON.parse(response.body);
    };
    return {
      authorize: (amountCents: number, category: string | null) =>
        onCard('authorize_card', { type: 'authorization', amountCents }, category),
      increment: (id: string, amountCents: number) =>
        onAuthorization('increment_authorization', id, { type: 'increment', amountCents }),
      capture: (id: string, amountCents: number, isFinal: boolean) =>
        onAuthorization('capture_authorization', id, { type: 'clearing', amountCents, isFinal }),
      reverse: (id: string, amountCents: number) =>
        onAuthorization('reverse_authorization', id, { type: 'reversal', amountCents }),
      expire: (id: string) => onAuthorization('expire_authorization', id, { type: 'expiry' }),
      forceCapture: (amountCents: number, category: string | null) =>
        onCard('force_capture', { type: 'clearing', amountCents }, category),
      settle: (type: 'purchase' | 'refund', amountCents: number, category: string | null) =>
        transaction(context.orm, (tx) =>
          settleOne(tx, settlementOf(tenant, cardId, { type, amountCents, merchant: of(category) })),
        ),
    };
  };

  const spending = async (cardId: string) =>
    (
      await commands.owner.query(
        `SELECT r.every, r.net_cents, r.is_counted FROM card k JOIN partner p ON p.id = k.partner_id
         CROSS JOIN LATERAL read_spending(k, p.spending_controls, $2) r WHERE k.id = $1`,
        [cardId, new Date().toISOString()],
      )
    ).rows;

  it('are the running sum of what counts, never below zero, and decide by it, at the end of every interval', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...STARTS),
        fc.array(limit, { maxLength: 5 }),
        fc.array(limit, { maxLength: 3 }),
        fc.array(step, { minLength: 5, maxLength: 25 }),
        async (start, limits, accountLimits, steps) => {
          const cardId = await controlled(limits, accountLimits);
          const use = uses(cardId);
          const all = [...limits, ...accountLimits];
          let now = Date.parse(start);
          const counted: Counted[] = [];
          const authorizations: (Counted & { id: string; amount: number; held: number; settled: number })[] =
            [];
          const recount = (one: (typeof authorizations)[number]) => {
            one.cents = one.held > 0 ? Math.max(one.amount, one.settled) : one.settled;
          };
          const exceeds = (at: number, category: string | null, cents: number, whole: number) =>
            all
              .filter(({ categories }) => categories === null || categories.includes(category ?? 'none'))
              .some((one) =>
                one.interval === 'per_authorization'
                  ? whole > one.amount
                  : sumOf(one, at, counted) + cents > one.amount,
              );
          mock.timers.enable({ apis: ['Date'], now });
          try {
            for (const { kind, cents, category, which, laterMs } of steps) {
              now += laterMs;
              mock.timers.setTime(now);
              const one = authorizations[which % Math.max(1, authorizations.length)];
              if (kind === 'authorize') {
                const isDeclined = exceeds(now, category, cents, cents);
                const { id, status } = await use.authorize(cents, category);
                assert.equal(status, isDeclined ? 'declined' : 'pending');
                if (isDeclined) continue;
                const made = {
                  id,
                  item: itemOf(id),
                  at: now,
                  category,
                  cents,
                  amount: cents,
                  held: cents,
                  settled: 0,
                };
                authorizations.push(made);
                counted.push(made);
              } else if (kind === 'purchase') {
                const isDeclined = exceeds(now, category, cents, cents);
                const { id, type } = await use.settle('purchase', cents, category);
                assert.equal(type, isDeclined ? 'decline' : 'purchase');
                if (!isDeclined) counted.push({ item: itemOf(id), at: now, category, cents });
              } else if (kind === 'refund') {
                const { id } = await use.settle('refund', cents, category);
                counted.push({ item: itemOf(id), at: now, category, cents: -cents });
              } else if (kind === 'forceCapture') {
                const { id } = await use.forceCapture(cents, category);
                counted.push({ item: itemOf(id), at: now, category, cents });
              } else if (one === undefined) {
              } else if (kind === 'capture' || kind === 'captureSome') {
                await use.capture(one.id, cents, kind === 'capture');
                one.settled += cents;
                one.held = kind === 'capture' ? 0 : Math.max(0, one.held - cents);
                recount(one);
              } else if (one.held === 0) {
              } else if (kind === 'increment') {
                const isDeclined = exceeds(one.at, one.category, cents, one.amount + cents);
                const { requests } = await use.increment(one.id, cents);
                assert.equal(requests.at(-1).approved, !isDeclined);
                if (isDeclined) continue;
                one.amount += cents;
                one.held += cents;
                recount(one);
              } else if (kind === 'reverse') {
                const back = Math.min(cents, one.held);
                await use.reverse(one.id, back);
                one.amount -= back;
                one.held -= back;
                recount(one);
              } else {
                await use.expire(one.id);
                one.held = 0;
                recount(one);
              }
            }
            const found = (await spending(cardId)).map(({ net_cents }) => Number(net_cents));
            assert.deepEqual(
              found,
              all.map((one) => (one.interval === 'per_authorization' ? 0 : sumOf(one, now, counted))),
            );
          } finally {
            mock.timers.reset();
          }
          assert.deepEqual(await checkBooks(commands.context.orm.em.fork()), []);
        },
      ),
      { numRuns: propertyRuns(10) },
    );
  });

  const daily = (amount: number): Limit => ({ amount, interval: 'daily', categories: null });
  const at = (time: string) => mock.timers.setTime(Date.parse(time));

  it('begin anew at midnight in UTC, while what was authorized before it still counts for its own day', async () => {
    mock.timers.enable({ apis: ['Date'], now: Date.parse('2027-03-10T23:59:59.999Z') });
    const cardId = await controlled([daily(100)]);
    const use = uses(cardId);
    const { id } = await use.authorize(100, null);
    assert.equal((await use.authorize(1, null)).decline_reason, 'spending_limit_exceeded');
    at('2027-03-11T00:00:00.000Z');
    assert.equal((await use.authorize(100, null)).decline_reason, null);
    const { requests } = await use.increment(id, 1);
    assert.equal(requests.at(-1).decline_reason, 'spending_limit_exceeded', 'yesterday’s limit is used up');
    await use.reverse(id, 60);
    assert.equal((await use.authorize(1, null)).decline_reason, 'spending_limit_exceeded');
    assert.equal((await use.increment(id, 60)).amount, 100, 'yesterday’s limit has room again');
  });

  it('give back for a refund at most what its interval had spent by then', async () => {
    mock.timers.enable({ apis: ['Date'], now: Date.parse('2027-03-10T12:00:00Z') });
    const cardId = await controlled([daily(100)]);
    const use = uses(cardId);
    const later = () => mock.timers.tick(1_000);
    const spent = async () => Number((await spending(cardId))[0].net_cents);
    const { id } = await use.authorize(40, null);
    later();
    await use.settle('refund', 90, null);
    assert.equal(await spent(), 0, 'the other 50 make no room');
    later();
    assert.equal((await use.authorize(101, null)).decline_reason, 'spending_limit_exceeded');
    await use.authorize(70, null);
    await use.increment(id, 30);
    assert.equal(await spent(), 70, 'the refund now gives back 70, since so much was spent before it');
    await use.reverse(id, 70);
    assert.equal(await spent(), 70);
    at('2027-03-11T00:00:00Z');
    await use.settle('refund', 50, null);
    later();
    await use.authorize(100, null);
    assert.equal(await spent(), 100, 'a refund of what was spent yesterday makes no room today');
    assert.deepEqual(await checkBooks(commands.context.orm.em.fork()), []);
  });

  it('count a request that waits for its card over midnight in the day on which it was asked', async () => {
    mock.timers.enable({ apis: ['Date'], now: Date.parse('2027-03-10T23:59:59.999Z') });
    const cardId = await controlled([daily(100)]);
    const use = uses(cardId);
    await using other = await commands.connect();
    await other.query('BEGIN');
    await other.query('SELECT FROM card WHERE id = $1 FOR NO KEY UPDATE', [cardId]);
    const waiting = use.authorize(100, null);
    await untilWaiting(commands);
    at('2027-03-11T00:00:00.500Z');
    await other.query('COMMIT');
    assert.equal((await waiting).created, '2027-03-10T23:59:59.999Z');
    assert.equal((await use.authorize(100, null)).decline_reason, null, 'nothing was spent today');
  });

  it('are made for a limit by its first decision, and deleted by one after it is gone', async () => {
    const keys = async (cardId: string) =>
      (
        await commands.owner.query('SELECT limit_key FROM spending_counter WHERE card_id = $1 ORDER BY 1', [
          cardId,
        ])
      ).rows.map(({ limit_key }) => limit_key);
    const cardId = await controlled([
      daily(100),
      { amount: 5, interval: 'weekly', categories: ['5812', '5411'] },
    ]);
    const use = uses(cardId);
    await use.settle('refund', 5, null);
    await use.authorize(1, null);
    assert.deepEqual(await keys(cardId), ['daily', 'weekly 5411,5812']);
    await commands.owner.query('UPDATE card SET spending_controls = $2 WHERE id = $1', [
      cardId,
      JSON.stringify(completeControls({ spending_limits: [{ amount: 1, interval: 'all_time' }] })),
    ]);
    await use.authorize(1, null);
    assert.deepEqual(await keys(cardId), ['all_time']);
  });

  it('that are wrong are found by the check of the books', async () => {
    const cardId = await controlled([daily(100)]);
    await uses(cardId).authorize(10, null);
    assert.deepEqual(await checkBooks(commands.context.orm.em.fork()), []);
    await commands.owner.query('UPDATE spending_counter SET net_cents = 11 WHERE card_id = $1', [cardId]);
    const [violation, ...others] = await checkBooks(commands.context.orm.em.fork());
    assert.deepEqual(others, []);
    assert.deepEqual([violation?.invariant, violation?.subject], [14, cardId]);
    assert.match(violation?.message ?? '', /^its spending of daily since .+ is counted as 11; .+ say 10$/);
    await commands.owner.query('UPDATE spending_counter SET net_cents = 10 WHERE card_id = $1', [cardId]);
  });
});
