import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mock } from 'node:test';
import { pino } from 'pino';
import type { FakeLithic } from '../../../dev/lithic/fake-lithic.ts';
import {
  type Card,
  makeAuthorizationRequest,
  makeCard,
  makeTransaction,
  type Transaction,
} from '../../../dev/lithic/objects.ts';
import type { EventPost } from '../../../dev/lithic/posts.ts';
import {
  endObject,
  stateContext,
  type TakenObject,
  takeDueObjects,
  takePaymentsToRead,
} from '../../../issuers/inbox/inbox.ts';
import { createInboxRoom, MAX_WAITING, MAX_WAITING_BYTES } from '../../../issuers/inbox/room.ts';
import { createRequestBudget } from '../../../issuers/request-budget.ts';
import { transaction } from '../../../platform/db/transaction.ts';
import { lithicCard, startLithicStack } from '../../support/adapters/lithic.ts';
import { createCard } from '../../support/cards.ts';
import { startInboxAlone, whyWaiting } from '../../support/inbox.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;
const network = 'lithic';
/** As many as there are tests, each with 1,000 cents. */
const CARDS = 18;

describe('the inbox of the card network', () => {
  let fake: FakeLithic;
  let stack: TestStack;
  let stop: () => Promise<void>;
  let partner: TestPartner;
  let other: TestPartner;
  let othersCard: Card;
  const cardIds: string[] = [];
  let cardId: string;
  /** What it is at Lithic. */
  let card: Card;
  const running: (() => Promise<void>)[] = [];

  before(async () => {
    ({ fake, stack, stop } = await startLithicStack());
    [partner, other] = [await fundedPartner(stack, 100_000), await fundedPartner(stack)];
    const issue = async (of: TestPartner): Promise<string> =>
      (await createCard(of, { amount: 1_000 }, live)).json.id;
    while (cardIds.length < CARDS) cardIds.push(await issue(partner));
    othersCard = await lithicCard(fake, stack, await issue(other));
    // From now on, each test looks by itself.
    await stack.stopWorker();
    fake.program.posts.holdsEvents = true;
  });
  beforeEach(async () => {
    cardId = cardIds.pop() as string;
    card = await lithicCard(fake, stack, cardId);
    fake.calls.length = 0;
    fake.onCall = async () => {};
  });
  afterEach(async () => {
    await stopRunning();
    fake.faults.clear();
    await asOwner(stack, 'DELETE FROM network_inbox');
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stop();
  });

  const start = async () => {
    running.push(await startInboxAlone(stack));
  };
  async function stopRunning(): Promise<void> {
    for (const stopInbox of running.splice(0)) await stopInbox();
  }
  /** A payment whose merchant takes each amount, in cents. */
  const cleared = (amounts: readonly number[], on = card): Transaction => {
    const [first = 0, ...further] = amounts;
    const payment = fake.program.begin(on, {}, { type: 'CLEARING', amount: first });
    for (const amount of further) fake.program.record(payment, { type: 'CLEARING', amount });
    return payment;
  };
  const held = (amount: number): Transaction =>
    fake.program.begin(card, {}, { type: 'AUTHORIZATION', amount });
  const taken = (status: number) => assert.equal(status, 200);
  /** Posts every state that the payment has had, or the last ones. */
  const send = async ({ token }: Transaction, last = Number.POSITIVE_INFINITY): Promise<void> => {
    for (const event of statesOf(token).slice(-last)) taken(await fake.program.posts.send(event));
  };
  const statesOf = (token: string): EventPost[] =>
    fake.program.posts.events.filter(({ body }) => JSON.parse(body).token === token);
  /** Posts a message that only names the payment. */
  const tell = async (token: string): Promise<void> => taken(await post(token));
  const post = (token: string): Promise<number> => {
    const body = JSON.stringify({ event_type: 'card_transaction.updated', token });
    return fake.program.posts.send({ id: `msg_${randomUUID()}`, body });
  };
  const reads = () =>
    fake.calls.flatMap(({ call }) => (call.startsWith('GET /v1/transactions/') ? [call.split('/')[3]] : []));
  const rows = () =>
    asOwner<{ id: string; reason: string | null; attempts: number; body: Buffer | null }>(
      stack,
      'SELECT id, reason, attempts, body FROM network_inbox ORDER BY id',
    );
  const done = () => until('all are done', async () => (await rows()).length === 0);
  const balance = async () => (await partner.call('GET', `/cards/${cardId}`, live)).json.balance;
  const makeDue = () => asOwner(stack, "UPDATE network_inbox SET retry_after = '-infinity'");

  it('is one row a payment, however many messages there are, and two workers book it once', async () => {
    const { token } = cleared([100, 50]);
    await Promise.all(Array.from({ length: 20 }, () => tell(token)));
    assert.equal((await rows()).length, 1);
    await start();
    await start();
    await done();
    await tell(token);
    await done();
    assert.equal(await balance(), 850);
  });

  it('has the newest state, sealed, which an older one does not replace, and reads nothing', async () => {
    const { token } = cleared([10, 20]);
    const [older, newer] = statesOf(token) as [EventPost, EventPost];
    for (const event of [newer, older]) taken(await fake.program.posts.send(event));
    const [row] = await rows();
    assert.ok(!row?.body?.toString('latin1').includes(card.token));
    const state = stack.operator.ring.openBytes(row?.body as Buffer, stateContext(token));
    assert.equal(JSON.parse(state.toString()).events.length, 2);
    await start();
    await done();
    assert.deepEqual([await balance(), reads()], [970, []]);
  });

  for (const isTold of [false, true]) {
    it(`is read if a message without a state comes while one waits${isTold ? ', also if an older state is told after that' : ''}`, async () => {
      const payment = cleared([10, 20]);
      await send(payment);
      fake.program.record(payment, { type: 'CLEARING', amount: 30 });
      await tell(payment.token);
      if (isTold) taken(await fake.program.posts.send(statesOf(payment.token)[0] as EventPost));
      await start();
      await done();
      assert.deepEqual([await balance(), reads()], [940, [payment.token]]);
    });
  }

  it('is read if what another release has stored of it lacks something', async () => {
    const payment = cleared([10]);
    await send(payment);
    const { ring } = stack.operator;
    const { events: _, ...less } = payment;
    const body = ring.seal(Buffer.from(JSON.stringify(less)), stateContext(payment.token));
    await asOwner(stack, 'UPDATE network_inbox SET body = $1', [body]);
    await start();
    await done();
    assert.deepEqual([await balance(), reads()], [990, [payment.token]]);
  });

  it('keeps what arrives while a payment is looked at', async () => {
    const payment = cleared([10]);
    const isAsked = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    await tell(payment.token);
    fake.onCall = async () => {
      isAsked.resolve();
      await goOn.promise;
    };
    await start();
    await isAsked.promise;
    await tell(payment.token);
    goOn.resolve();
    await done();
    assert.ok(reads().length > 1);
    assert.equal(await balance(), 990);
  });

  it('keeps what arrives after a quicker look has ended the one before it', async () => {
    const payment = cleared([10]);
    await tell(payment.token);
    const take = async (): Promise<TakenObject> =>
      (await takeDueObjects(stack.orm, { network, limit: 1 }))[0] as TakenObject;
    const end = (taken: TakenObject) => transaction(stack.orm, (tx) => endObject(tx, taken));
    const slow = await take();
    await tell(payment.token);
    await end(await take());
    assert.deepEqual(await rows(), []);
    await tell(payment.token);
    await end(slow);
    assert.equal((await rows()).length, 1);
    await start();
    await done();
    assert.equal(await balance(), 990);
  });

  it('tries again what the network does not answer about, and delays no other', async () => {
    const [slow, quick] = [cleared([1]), cleared([2])];
    fake.faults.add({ fault: '500 before', request: `GET /v1/transactions/${slow.token}` });
    await tell(slow.token);
    await start();
    await until('it waits', async () => (await whyWaiting(stack, [slow.token]))[0] !== null);
    await tell(quick.token);
    await until('the other is done', async () => (await rows()).length === 1);
    assert.deepEqual(await whyWaiting(stack, [slow.token]), ['network_unavailable']);
    fake.faults.clear();
    await makeDue();
    await done();
    assert.equal(await balance(), 997);
  });

  it('says why a payment waits: what can not be read, and a card that is unknown, until it is known', async () => {
    const unreadable = cleared([5]);
    Object.assign(unreadable, { events: 'none' });
    const byHand = makeCard({}, new Date());
    fake.program.cards.set(byHand.token, byHand);
    const unknown = cleared([30], byHand);
    await start();
    await tell(unreadable.token);
    await send(unknown);
    await until('both wait', async () => (await rows()).every(({ reason }) => reason !== null));
    assert.deepEqual(await whyWaiting(stack, [unreadable.token]), ['not_readable']);
    assert.deepEqual(await whyWaiting(stack, [unknown.token]), ['card_unknown']);
    fake.program.transactions.delete(unreadable.token);
    await asOwner(stack, 'DELETE FROM network_inbox WHERE id = $1', [unreadable.token]);
    await asOwner(stack, 'UPDATE card SET network_card_id = $2 WHERE id = $1', [cardId, byHand.token]);
    await done();
    assert.equal(await balance(), 970);
  });

  it('ends with a payment that neither side has', async () => {
    await start();
    await tell(randomUUID());
    await done();
  });

  it('takes again what a worker that died had taken, once its minute is over', async () => {
    const payment = cleared([5]);
    await tell(payment.token);
    await asOwner(stack, "UPDATE network_inbox SET attempts = 1, retry_after = now() + interval '1 minute'");
    await start();
    await tell(cleared([1]).token);
    await until('the other is done', async () => (await rows()).length === 1);
    assert.ok(!reads().includes(payment.token));
    await makeDue();
    await done();
    assert.equal(await balance(), 994);
  });

  it('reads a payment again at its time, whether or not it is told of it', async () => {
    const payment = held(7);
    await send(payment);
    await start();
    await done();
    const [row] = await asOwner<{ at: Date }>(
      stack,
      'SELECT read_after AS at FROM payment WHERE payment_id = $1',
      [payment.token],
    );
    // It holds for a minute here, so that it is read when that is over.
    const inMs = (row?.at.getTime() ?? 0) - Date.now();
    assert.ok(inMs > 60_000 && inMs <= 90_000, String(inMs));
    fake.program.record(payment, { type: 'CLEARING', amount: 7 });
    await asOwner(stack, 'UPDATE payment SET read_after = now() WHERE payment_id = $1', [payment.token]);
    await until('it is booked', async () => (await balance()) === 993);
  });

  it('frees what the network never took of ours, though the clock of the worker is behind', async () => {
    const transaction = makeTransaction(card, {}, new Date());
    const asked = { amount: 7, status: 'AUTHORIZATION', eventToken: null } as const;
    assert.equal(
      await fake.program.posts.ask(makeAuthorizationRequest(transaction, card, asked)),
      'APPROVED',
    );
    const held = async () => {
      const { json } = await partner.call('GET', `/cards/${cardId}`, live);
      return json.balance - json.available_balance;
    };
    assert.equal(await held(), 7);
    await asOwner(
      stack,
      `UPDATE payment SET read_after = now(),
         requests = jsonb_set(requests, '{0,created}', to_jsonb(now() - interval '11 minutes')) WHERE payment_id = $1`,
      [transaction.token],
    );
    await takePaymentsToRead(stack.orm, { network, limit: 10 });
    mock.timers.enable({ apis: ['Date'], now: Date.now() - 120_000 });
    try {
      await start();
      await done();
    } finally {
      mock.timers.reset();
    }
    assert.equal(await held(), 0);
  });

  it('rests no longer for a turn at the network that it missed, however often', async () => {
    const { token } = cleared([1]);
    await tell(token);
    const logger = pino({ level: 'silent' });
    const budget = createRequestBudget({ orm: stack.orm, network, perSecond: 20, logger });
    await budget.takeTurn('event', null);
    await asOwner(stack, "UPDATE request_budget SET paused_until = now() + interval '50 seconds'");
    await asOwner(stack, 'UPDATE network_inbox SET attempts = 8');
    running.push(await startInboxAlone(stack, budget));
    const [left] = await until('it has missed its turn', async () => {
      const found = await asOwner<{ is_soon: boolean }>(
        stack,
        `SELECT retry_after < now() + interval '3 seconds' AS is_soon FROM network_inbox
         WHERE reason = 'network_unavailable'`,
      );
      return found.length > 0 && found;
    });
    assert.deepEqual(left, { is_soon: true });
    await asOwner(stack, 'UPDATE request_budget SET paused_until = now()');
    await done();
  });

  it('reads it again although thousands of messages of an account wait', async () => {
    const payment = held(7);
    await send(payment);
    await start();
    await done();
    await stopRunning();
    await asOwner(
      stack,
      `INSERT INTO network_inbox (id, network, kind, partner_id) SELECT gen_random_uuid(), $1, 'payment', $2
       FROM generate_series(1, 2000)`,
      [network, other.id],
    );
    await asOwner(stack, 'UPDATE payment SET read_after = now() WHERE payment_id = $1', [payment.token]);
    const again = await takePaymentsToRead(stack.orm, { network, limit: 10 });
    assert.deepEqual(again, [{ payment_id: payment.token }]);
    assert.deepEqual(await takePaymentsToRead(stack.orm, { network, limit: 10 }), []);
  });

  it('takes accounts in turns, however much of one waits, and what is tried again after what arrives', async () => {
    const known = held(7);
    await send(known);
    await start();
    await done();
    await stopRunning();
    const triedAgain = cleared([1], makeCard({}, new Date()));
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
    await tell(known.token);
    const others = cleared([1], othersCard);
    await send(others);
    const order: string[] = [];
    for (let count = 0; count < 5; count += 1)
      for (const { id } of await takeDueObjects(stack.orm, { network, limit: 1 })) order.push(id);
    assert.deepEqual(
      order,
      [others, first, further, known, triedAgain].map(({ token }) => token),
    );
  });

  const flood = () =>
    asOwner(
      stack,
      `INSERT INTO network_inbox (id, network, kind) SELECT 'flood' || n, 'another', 'payment' FROM generate_series(1, $1) n`,
      [MAX_WAITING],
    );

  it('is counted once a second by a process, which knows what it has added itself', async () => {
    let nowMs = 0;
    const room = createInboxRoom(stack.orm, () => nowMs);
    assert.equal(await room.has(MAX_WAITING_BYTES), true);
    room.take(10);
    assert.equal(await room.has(MAX_WAITING_BYTES), false);
    assert.equal(await room.has(MAX_WAITING_BYTES - 10), true);
    await flood();
    assert.equal(await room.has(0), true);
    nowMs += 1_000;
    assert.equal(await room.has(0), false);
  });

  it('has the network repeat what is past its bound, and loses nothing that waits', async () => {
    const payment = cleared([3]);
    await send(payment);
    await flood();
    const refused = cleared([4]);
    // The API counts what waits once a second.
    await until('it is full', async () => (await post(randomUUID())) === 503);
    const [event] = statesOf(refused.token) as [EventPost];
    assert.equal(await fake.program.posts.send(event), 503);
    await send(payment);
    await asOwner(stack, "DELETE FROM network_inbox WHERE network = 'another'");
    await start();
    await done();
    assert.equal(await balance(), 997);
    await until('it is taken', async () => (await fake.program.posts.send(event)) === 200);
    await done();
    assert.equal(await balance(), 993);
  });
});
