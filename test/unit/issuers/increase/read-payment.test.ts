import assert from 'node:assert/strict';
import { pino } from 'pino';
import { type FakeIncrease, startFakeIncrease } from '../../../../dev/increase/fake-increase.ts';
import { CardNetworkUnavailable, isReadable } from '../../../../issuers/card-network.ts';
import { createIncreaseApi, type IncreaseApi } from '../../../../issuers/increase/increase-api.ts';
import { readHolds, readPayment } from '../../../../issuers/increase/read-payment.ts';
import { UNLIMITED } from '../../../../issuers/request-budget.ts';
import { increaseConfigOf } from '../../../support/adapters/increase.ts';

describe('reading a card payment of Increase', () => {
  let fake: FakeIncrease;
  let api: IncreaseApi;
  let cardId: string;
  before(async () => {
    fake = await startFakeIncrease();
    const logger = pino({ level: 'silent' });
    api = createIncreaseApi({ config: increaseConfigOf(fake), budget: UNLIMITED, logger });
    const account = fake.bank.openAccount({ name: 'card' }, null);
    fake.bank.pay(account.id, 1_000_000);
    cardId = fake.bank.makeCard({ account_id: account.id }, null).id;
  });
  afterEach(() => {
    fake.onRequest = async () => 'go on';
  });
  after(async () => {
    await api.close();
    await fake.stop();
  });

  /** An authorization that Increase approves by itself. */
  async function authorized(amount: number) {
    await fake.simulations.authorize({ amount, card_id: cardId });
    const payment = fake.bank.books.payments.at(-1);
    const pending = fake.bank.books.pendingTransactions.at(-1);
    assert.ok(payment !== undefined && pending !== undefined);
    const settle = (cents: number, isPartial: boolean) =>
      fake.simulations.settle(
        { card_id: cardId, pending_transaction_id: pending.id, amount: cents },
        isPartial,
      );
    return { payment, settle };
  }
  type Authorized = Awaited<ReturnType<typeof authorized>>;
  const read = async (id: string) => {
    const snapshot = await readPayment(api, id, 'event');
    assert.ok(snapshot !== null && isReadable(snapshot));
    return snapshot;
  };

  it('has what its pending transactions hold, which its elements do not say', async () => {
    const { payment, settle } = await authorized(100);
    assert.deepEqual(
      [(await read(payment.id)).heldCents, (await read(payment.id)).networkCardId],
      [100, cardId],
    );
    settle(60, true);
    assert.equal((await read(payment.id)).heldCents, 40);
    settle(10, false);
    const { heldCents, movements, version } = await read(payment.id);
    assert.deepEqual([heldCents, movements.length, version], [0, 2, [3, 1]]);
  });

  for (const [what, happen, heldCents] of [
    ['is cleared', ({ settle }: Authorized) => settle(100, false), 0],
    [
      'is asked for more',
      ({ payment }: Authorized) => fake.simulations.increment({ card_payment_id: payment.id, amount: 50 }),
      150,
    ],
  ] as const)
    it(`never has the elements of one moment and the holds of another, if it ${what} meanwhile`, async () => {
      const one = await authorized(100);
      let reads = 0;
      fake.onRequest = async ({ name }, when) => {
        if (when === 'before' && name.startsWith('GET /card_payments')) reads += 1;
        if (reads === 2) {
          reads += 1;
          await happen(one);
        }
        return 'go on';
      };
      const snapshot = await read(one.payment.id);
      assert.deepEqual([snapshot.heldCents, snapshot.version[0]], [heldCents, 2]);
    });

  it('gives up for now if it changes all the time', async () => {
    const { payment } = await authorized(100);
    fake.onRequest = async ({ name }, when) => {
      if (when === 'before' && name.startsWith('GET /card_payments'))
        await fake.simulations.increment({ card_payment_id: payment.id, amount: 1 });
      return 'go on';
    };
    await assert.rejects(readPayment(api, payment.id, 'event'), CardNetworkUnavailable);
  });

  it('takes one request if it holds nothing, and is null if there is none', async () => {
    await fake.simulations.single(cardId, 50);
    const payment = fake.bank.books.payments.at(-1);
    const before = fake.requests.length;
    assert.equal((await read(payment?.id ?? '')).movements.length, 1);
    assert.equal(fake.requests.length, before + 1);
    assert.equal(await readPayment(api, 'card_payment_unknown', 'event'), null);
  });

  it('is listed with one request for all that is held: what is gone from there is complete, if it is old', async () => {
    const old = await authorized(100);
    const held = await authorized(200);
    const minutesAgo = new Date(Date.now() - 3_600_000).toISOString();
    for (const { payment } of [old, held]) for (const one of payment.elements) one.created_at = minutesAgo;
    old.settle(60, false);
    const before = fake.requests.length;
    const snapshot = await readHolds(api);
    const recent = await authorized(300);
    const heldCents = [old, held, recent].map(({ payment }) => snapshot(payment as never).heldCents);
    assert.deepEqual([heldCents, fake.requests.length], [[0, 200, 300], before + 1]);
  });

  it('fails if there is no definite answer', async () => {
    fake.onRequest = async () => 'drop';
    await assert.rejects(readPayment(api, 'card_payment_1', 'event'), CardNetworkUnavailable);
  });
});
