import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import type { PaymentSnapshot } from '../../../domain/payment.ts';
import {
  type CardNetwork,
  CardNetworkUnavailable,
  type UnreadableObject,
} from '../../../issuers/card-network.ts';
import { expectObject, MAX_WAITING, stateContext, takeDueObjects } from '../../../issuers/inbox/inbox.ts';
import { startInbox } from '../../../issuers/inbox/jobs.ts';
import { WORKER_ROLE } from '../../../platform/db/login.ts';
import type { Repetition } from '../../../platform/process/repeat.ts';
import { networkIdOf } from '../../support/api/network-events.ts';
import { createCard } from '../../support/cards.ts';
import { inboxRead, whyWaiting } from '../../support/inbox.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;
const NETWORK = 'elsewhere';
const NOWHERE = { name: null, categoryCode: null, city: null, country: null };

describe('the inbox of the card network', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  let networkCardId: string;
  let running: Pick<Repetition, 'stop'>[] = [];
  /** What the network has. */
  const payments = new Map<string, PaymentSnapshot | UnreadableObject>();
  let reads: string[];
  /** Called when the network is asked. */
  let onRead: () => Promise<void>;

  before(async () => {
    stack = await startTestStack();
    partner = await fundedPartner(stack, 100_000);
  });
  beforeEach(async () => {
    cardId = (await createCard(partner, { amount: 1_000 }, live)).json.id;
    networkCardId = await networkIdOf(stack, cardId);
    reads = [];
    onRead = async () => {};
  });
  afterEach(async () => {
    for (const one of running) await one.stop();
    running = [];
    await asOwner(stack, 'DELETE FROM network_inbox', []);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  const start = () => {
    const { orm, client, config } = stack;
    const liveNetwork: Partial<CardNetwork> = {
      async readPayment(id) {
        reads.push(id);
        await onRead();
        return payments.get(id) ?? null;
      },
      snapshotOf: (state) => JSON.parse(Buffer.from(state).toString()),
      readTransfer: async (token) => ({ type: 'outcome', subject: 'card', token }),
    };
    const one = startInbox({
      orm,
      ring: stack.operator.ring,
      direct: { databaseUrl: config.databaseUrl, role: WORKER_ROLE },
      client,
      liveNetwork: liveNetwork as CardNetwork,
      cardNetwork: NETWORK,
      authorizationTtlMs: 60_000,
      logger: pino({ level: 'silent' }),
    });
    running.push(one);
    return one;
  };
  /** A payment with clearings of these amounts. */
  const cleared = (amounts: number[], on = networkCardId, id: string = randomUUID()): PaymentSnapshot => ({
    paymentId: id,
    networkCardId: on,
    version: [amounts.length],
    requests: [],
    movements: amounts.map((amountCents, n) => ({
      id: `${id}/${n}`,
      kind: 'clearing',
      amountCents,
      merchant: NOWHERE,
      at: new Date(0).toISOString(),
      ofAuthorization: false,
      refunds: null,
    })),
    authorizedCents: 0,
    heldCents: 0,
    endedBy: null,
    expiresAt: null,
    unreadable: [],
  });
  /** A payment that holds seven cents. */
  const held = (id: string = randomUUID()): PaymentSnapshot => ({
    ...cleared([], networkCardId, id),
    requests: [
      {
        id: `${id}/request`,
        kind: 'authorization',
        amountCents: 7,
        approved: true,
        reason: null,
        by: 'network',
        merchant: NOWHERE,
        at: new Date(0).toISOString(),
      },
    ],
    authorizedCents: 7,
    heldCents: 7,
  });
  const context = () => ({ orm: stack.orm, ring: stack.operator.ring });
  const tell = (id: string, kind: 'payment' | 'transfer' = 'payment') =>
    expectObject(context(), NETWORK, { kind, id, networkCardId: null, state: null });
  const send = (snapshot: PaymentSnapshot) => {
    const { paymentId: id, networkCardId: on, version } = snapshot;
    const state = { body: Buffer.from(JSON.stringify(snapshot)), version };
    return expectObject(context(), NETWORK, { kind: 'payment', id, networkCardId: on, state });
  };
  const rows = () =>
    asOwner<{ id: string; seq: string; reason: string | null; attempts: number; body: Buffer | null }>(
      stack,
      'SELECT id, seq, reason, attempts, body FROM network_inbox ORDER BY id',
      [],
    );
  const done = () => until('all are done', async () => (await rows()).length === 0);
  const balance = async () => (await partner.call('GET', `/cards/${cardId}`, live)).json.balance;
  const makeDue = () => asOwner(stack, "UPDATE network_inbox SET retry_after = '-infinity'", []);

  it('is one row a payment, however many messages there are, and two workers book it once', async () => {
    const payment = cleared([100, 50]);
    payments.set(payment.paymentId, payment);
    await Promise.all(Array.from({ length: 20 }, () => tell(payment.paymentId)));
    const [row, ...others] = await rows();
    assert.deepEqual([row?.seq, others], ['20', []]);
    start();
    start();
    await done();
    await tell(payment.paymentId);
    await done();
    assert.equal(await balance(), 850);
  });

  it('has the newest state, sealed, which an older one does not replace, and reads nothing', async () => {
    const id = randomUUID();
    await send(cleared([10, 20], networkCardId, id));
    await send(cleared([10], networkCardId, id));
    const [row] = await rows();
    assert.ok(!row?.body?.toString('latin1').includes(networkCardId));
    const state = stack.operator.ring.openBytes(row?.body as Buffer, stateContext(id));
    assert.equal(JSON.parse(state.toString()).movements.length, 2);
    start();
    await done();
    assert.deepEqual([await balance(), reads], [970, []]);
  });

  for (const [title, amounts] of [
    ['', []],
    [', also if an older state is told after that', [10]],
  ] as const) {
    it(`is read if a message without a state comes while one waits${title}`, async () => {
      const id = randomUUID();
      await send(cleared([10, 20], networkCardId, id));
      payments.set(id, cleared([10, 20, 30], networkCardId, id));
      await tell(id);
      if (amounts.length > 0) await send(cleared([...amounts], networkCardId, id));
      start();
      await done();
      assert.deepEqual([await balance(), reads], [940, [id]]);
    });
  }

  it('keeps what arrives while a payment is looked at', async () => {
    const id = randomUUID();
    payments.set(id, cleared([10], networkCardId, id));
    const isAsked = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    onRead = async () => {
      onRead = async () => {};
      isAsked.resolve();
      const read = payments.get(id);
      payments.set(id, read as PaymentSnapshot);
      await goOn.promise;
    };
    await tell(id);
    start();
    await isAsked.promise;
    await tell(id);
    goOn.resolve();
    await done();
    assert.ok(reads.length > 1);
  });

  it('tries again what the network does not answer about, and delays no other', async () => {
    const [slow, other] = [cleared([1]), cleared([2])];
    for (const one of [slow, other]) payments.set(one.paymentId, one);
    let isDown = true;
    onRead = async () => {
      if (isDown && reads.at(-1) === slow.paymentId) throw new CardNetworkUnavailable('down');
    };
    await tell(slow.paymentId);
    start();
    await until('it waits', async () => (await whyWaiting(stack, [slow.paymentId]))[0] !== null);
    await tell(other.paymentId);
    await until('the other is done', async () => (await rows()).length === 1);
    assert.deepEqual(await whyWaiting(stack, [slow.paymentId]), ['network_unavailable']);
    isDown = false;
    await makeDue();
    await done();
    assert.equal(await balance(), 997);
  });

  it('says why a payment waits: what can not be read, and a card that is unknown, until it is known', async () => {
    const unreadable = randomUUID();
    payments.set(unreadable, { networkId: unreadable, token: null, unreadable: ['amount'] });
    const unknown = cleared([30], `net_${randomUUID()}`);
    payments.set(unknown.paymentId, unknown);
    start();
    await tell(unreadable);
    await tell(unknown.paymentId);
    await until('both wait', async () => (await rows()).every(({ reason }) => reason !== null));
    assert.deepEqual(await whyWaiting(stack, [unreadable]), ['not_readable']);
    assert.deepEqual(await whyWaiting(stack, [unknown.paymentId]), ['card_unknown']);
    await asOwner(stack, 'DELETE FROM network_inbox WHERE id = $1', [unreadable]);
    await asOwner(stack, 'UPDATE card SET network_card_id = $2 WHERE id = $1', [
      cardId,
      unknown.networkCardId,
    ]);
    await done();
    assert.equal(await balance(), 970);
  });

  it('ends with a payment that neither side has', async () => {
    start();
    await tell(randomUUID());
    await done();
  });

  it('takes again what a worker that died had taken, once its minute is over', async () => {
    const payment = cleared([5]);
    payments.set(payment.paymentId, payment);
    await tell(payment.paymentId);
    await asOwner(
      stack,
      "UPDATE network_inbox SET attempts = 1, retry_after = now() + interval '1 minute'",
      [],
    );
    start();
    await inboxUntouched();
    await makeDue();
    await done();
    assert.equal(await balance(), 994);

    async function inboxUntouched(): Promise<void> {
      const other = cleared([1]);
      payments.set(other.paymentId, other);
      await tell(other.paymentId);
      await until('the other is done', async () => (await rows()).length === 1);
      assert.ok(!reads.includes(payment.paymentId));
    }
  });

  it('looks an operation up that has ended, if the network has news of its transfer', async () => {
    start();
    await tell(cardId, 'transfer');
    await done();
    const late = await asOwner(stack, 'SELECT kind FROM late_answer WHERE id = $1', [cardId]);
    assert.deepEqual(late, [{ kind: 'card' }]);
    await asOwner(stack, 'DELETE FROM late_answer', []);
  });

  it('reads a payment again at its time, whether or not it is told of it', async () => {
    const payment = cleared([7]);
    payments.set(payment.paymentId, payment);
    await send(held(payment.paymentId));
    start();
    await done();
    const due = async () => {
      const [row] = await asOwner<{ at: Date }>(
        stack,
        'SELECT read_after AS at FROM payment WHERE payment_id = $1',
        [payment.paymentId],
      );
      return row?.at.getTime() ?? 0;
    };
    // It holds for a minute here, so that it is read when that is over.
    const inMs = (await due()) - Date.now();
    assert.ok(inMs > 60_000 && inMs <= 90_000, String(inMs));
    await asOwner(stack, 'UPDATE payment SET read_after = now() WHERE payment_id = $1', [payment.paymentId]);
    await until('it is read', () => reads.includes(payment.paymentId));
    await until('it is booked', async () => (await balance()) === 993);
  });

  it('takes accounts in turns, however much of one waits, and what is tried again after what arrives', async () => {
    const known = held();
    await send(known);
    start();
    await done();
    for (const one of running) await one.stop();
    const other = await fundedPartner(stack);
    const othersCard = await networkIdOf(stack, (await createCard(other, { amount: 500 }, live)).json.id);
    const triedAgain = cleared([1], 'of no card');
    await send(triedAgain);
    await asOwner(stack, 'UPDATE network_inbox SET attempts = 1, retry_after = now()');
    const first = cleared([1]);
    await send(first);
    // As if 30,000 of the account had arrived.
    await asOwner(
      stack,
      "UPDATE network_inbox SET retry_after = retry_after + interval '5 minutes' WHERE attempts = 0",
    );
    const further = cleared([1]);
    await send(further);
    await tell(known.paymentId);
    const others = cleared([1], othersCard);
    await send(others);
    const order: string[] = [];
    for (let count = 0; count < 5; count += 1)
      for (const { id } of await takeDueObjects(stack.orm, { network: NETWORK, limit: 1 })) order.push(id);
    const inTurn = [others, first, further, known, triedAgain];
    assert.deepEqual(
      order,
      inTurn.map(({ paymentId }) => paymentId),
    );
  });

  it('has the network repeat what is past its bound, and loses nothing that waits', async () => {
    const payment = cleared([3]);
    payments.set(payment.paymentId, payment);
    await tell(payment.paymentId);
    await asOwner(
      stack,
      `INSERT INTO network_inbox (id, network, kind) SELECT 'flood' || n, 'another', 'payment' FROM generate_series(1, $1) n`,
      [MAX_WAITING],
    );
    await assert.rejects(tell(randomUUID()), { code: 'unavailable' });
    await tell(payment.paymentId);
    await asOwner(stack, "DELETE FROM network_inbox WHERE network = 'another'", []);
    start();
    await done();
    assert.equal(await balance(), 997);
    await inboxRead(stack);
  });
});
