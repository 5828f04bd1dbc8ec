import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { type FakeIncrease, startFakeIncrease } from '../../../dev/increase/fake-increase.ts';
import { lowestId, newId } from '../../../platform/crypto/new-id.ts';
import { increaseConfigOf, WEBHOOK_SECRET } from '../../support/adapters/increase.ts';
import { changeStatus } from '../../support/card-status.ts';
import { inboxRead } from '../../support/inbox.ts';
import { reconciler } from '../../support/operator/reconcile.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestStack } from '../../support/stack.ts';
import { type Cardholder, cardholder, transfer } from '../../support/transfers.ts';
import { until } from '../../support/until.ts';

interface Entry {
  kind: 'card' | 'movement' | 'transaction';
  id: string | null | undefined;
  issuer_id: string | null | undefined;
}
type Found = Record<'missing_here' | 'missing_at_issuer' | 'different', Entry[]>;
const NOTHING: Found = { missing_here: [], missing_at_issuer: [], different: [] };

describe('operator network reconcile with Increase', () => {
  let fake: FakeIncrease;
  let stack: TestStack;
  let holder: Cardholder;
  let operate: ReturnType<typeof reconciler>['operate'];
  let reconcile: ReturnType<typeof reconciler>['reconcile'];
  let attention: ReturnType<typeof reconciler>['differences'];
  before(async () => {
    fake = await startFakeIncrease();
    stack = await startTestStack({ cardNetwork: 'increase', increase: increaseConfigOf(fake) });
    fake.subscribe(
      `http://${stack.config.host}:${stack.config.port}/network/increase/events`,
      WEBHOOK_SECRET,
    );
    const { apiKey, baseUrl, fundingAccountId } = increaseConfigOf(fake);
    ({
      operate,
      reconcile,
      differences: attention,
    } = reconciler(stack, {
      INCREASE_API_KEY: apiKey,
      INCREASE_BASE_URL: baseUrl,
      INCREASE_FUNDING_ACCOUNT_ID: fundingAccountId,
    }));
  });
  after(async () => {
    await stack.stop();
    await fake.stop();
  });
  beforeEach(async () => {
    holder = await cardholder(stack, 'live', 5_000);
  });
  afterEach(async () => {
    await assertFound({});
    assert.deepEqual(await operate('attention', 'list'), []);
  });

  async function assertFound(expected: Partial<Found>, since?: string): Promise<void> {
    const { matched: _, ...found } = await reconcile(since);
    assert.deepEqual(found, { ...NOTHING, ...expected });
  }

  /** The card of this test at the issuer. */
  async function atIssuer() {
    const [row] = await asOwner<{ network_card_id: string }>(
      stack,
      'SELECT network_card_id FROM card WHERE id = $1',
      [holder.cardId],
    );
    return fake.bank.card(row?.network_card_id);
  }

  async function transactions() {
    const { json } = await holder.partner.call('GET', `/cards/${holder.cardId}/transactions`, {
      mode: 'live',
    });
    return json.data as { id: string; amount: number; type: string }[];
  }

  it('finds nothing where both agree', async () => {
    const loaded = await transfer('topup', holder, 300);
    assert.equal(loaded.status, 201, loaded.text);
    const card = await atIssuer();
    const { pending_transaction: pending } = await fake.simulations.authorize({
      card_id: card.id,
      amount: 400,
    });
    assert.ok(pending);
    fake.simulations.settle({ card_id: card.id, pending_transaction_id: pending.id });
    await until('the purchase is booked', async () => (await transactions()).length === 1);
    const found = await reconcile();
    // The card, its load, its top-up and its payment.
    assert.deepEqual(found, { ...NOTHING, matched: 4 });
  });

  it('holds an increment that comes between the list of holds and that of payments', async () => {
    const card = await atIssuer();
    const { pending_transaction: pending } = await fake.simulations.authorize({
      card_id: card.id,
      amount: 400,
    });
    const card_payment_id = pending?.source.card_authorization?.card_payment_id;
    assert.ok(card_payment_id);
    let increments = 0;
    // So the list of holds says 400 cents at both looks, and that of payments an increment more.
    fake.onRequest = async ({ name }, when) => {
      if (when === 'before' && name === 'GET /card_payments') {
        increments += 1;
        await fake.simulations.increment({ card_payment_id, amount: 100 });
      }
      if (when === 'before' && name === 'GET /pending_transactions' && increments > 0)
        fake.simulations.reverse({ card_payment_id, amount: 100 });
      return 'go on';
    };
    await fake.delivery.idle();
    await inboxRead(stack);
    fake.delivery.hold();
    const { different } = await reconcile();
    assert.equal(different[0]?.corrected, true);
    fake.onRequest = async () => 'go on';
    const { json } = await holder.partner.call('GET', `/cards/${holder.cardId}`, { mode: 'live' });
    assert.deepEqual([json.balance, json.available_balance], [1_000, 1_000 - 400 - 100]);
    fake.delivery.release();
    fake.simulations.reverse({ card_payment_id });
    await fake.delivery.idle();
    await inboxRead(stack);
  });

  it('finds what only one side has, and what both have differently, until it is right', async () => {
    const { bank } = fake;
    const { books } = bank;
    const card = await atIssuer();
    const [lost, changed] = [await transfer('topup', holder, 300), await transfer('topup', holder, 500)];
    const madeByHand = bank.makeCard({ account_id: card.account_id, description: 'by hand' }, null);
    const sentByHand = bank.transfer(
      {
        account_id: fake.fundingAccountId,
        destination_account_id: card.account_id,
        amount: 700,
        description: 'by hand',
      },
      null,
    );
    const transferOf = (id: string) => {
      const found = books.transfers.find(({ description }) => description === id);
      assert.ok(found, id);
      return found;
    };
    const lostTransfer = transferOf(lost.json.id);
    const changedTransfer = transferOf(changed.json.id);
    books.transfers.splice(books.transfers.indexOf(lostTransfer), 1);
    changedTransfer.amount = 501;
    card.status = 'disabled';

    const found: Found = {
      missing_here: [
        { kind: 'card', id: null, issuer_id: madeByHand.id },
        { kind: 'movement', id: null, issuer_id: sentByHand.id },
      ],
      missing_at_issuer: [{ kind: 'movement', id: lost.json.id, issuer_id: null }],
      different: [
        { kind: 'card', id: holder.cardId, issuer_id: card.id },
        { kind: 'movement', id: changed.json.id, issuer_id: changedTransfer.id },
      ],
    };
    await assertFound(found);
    const items = await attention();
    assert.equal(items.length, 5);
    const reasons = items.map(({ reason }) => reason).join('\n');
    assert.match(reasons, /^the card is active here and frozen at the issuer/m);
    assert.match(reasons, /^top-up of 500 cents, succeeded, here; 501 cents, succeeded, at the issuer/m);
    assert.match(reasons, /^top-up of 300 cents, succeeded, here, and the issuer does not list it/m);

    // Again, it finds the same, and says so once.
    await assertFound(found);
    assert.deepEqual(await attention(), items);

    const byHand = items.find(({ reason }) => reason.includes(madeByHand.id));
    assert.ok(byHand);
    await operate('network', 'dismiss', byHand.id, '--reason', 'made for a test');
    assert.equal((await attention()).length, 4);
    books.transfers.push(lostTransfer);
    changedTransfer.amount = 500;
    card.status = 'active';
    books.transfers.splice(books.transfers.indexOf(sentByHand), 1);
    await assertFound({ missing_here: [{ kind: 'card', id: null, issuer_id: madeByHand.id }] });
    assert.deepEqual(await attention(), []);
    books.cards.splice(books.cards.indexOf(madeByHand), 1);
  });

  it('books a transaction that was never told, once, and no other', async () => {
    const card = await atIssuer();
    fake.delivery.hold();
    const { pending_transaction: pending } = await fake.simulations.authorize({
      card_id: card.id,
      amount: 400,
    });
    assert.ok(pending);
    const settlement = fake.simulations.settle({ card_id: card.id, pending_transaction_id: pending.id });
    fake.delivery.release(() => []);
    await fake.delivery.idle();
    assert.deepEqual(await transactions(), []);

    const found = await reconcile();
    const [booked] = await transactions();
    assert.equal(booked?.amount, 400);
    const entry = { kind: 'transaction', id: booked?.id, issuer_id: settlement.id, corrected: true };
    assert.deepEqual(found.missing_here, [entry]);
    assert.deepEqual((await reconcile()).missing_here, []);
    assert.equal((await transactions()).length, 1);
    const { action, detail } = (await operate('audit', 'list', '--subject', 'increase'))[1];
    assert.deepEqual([action, detail.corrected], ['network.reconcile', 1]);
  });

  it('agrees about a purchase that we were not asked about', async () => {
    const card = await atIssuer();
    await fake.simulations.single(card.id, 400);
    await until('the purchase is booked', async () => (await transactions()).length === 1);
    await assertFound({});
  });

  it('finds a clearing with another amount, and one that the issuer does not have', async () => {
    const card = await atIssuer();
    for (const amount of [400, 200]) {
      const { pending_transaction: pending } = await fake.simulations.authorize({ card_id: card.id, amount });
      assert.ok(pending);
      fake.simulations.settle({ card_id: card.id, pending_transaction_id: pending.id });
    }
    await until('the purchases are booked', async () => (await transactions()).length === 2);
    const { payments } = fake.bank.books;
    const [removed] = payments.splice(-1);
    const settled = payments
      .at(-1)
      ?.elements.find(({ category }) => category === 'card_settlement')?.card_settlement;
    assert.ok(removed && settled);
    settled.amount = 450;
    const booked = await transactions();
    const unlisted = booked.find(({ amount }) => amount === 200);
    const differing = booked.find(({ amount }) => amount === 400);

    const purchase = removed.elements.at(-1)?.card_settlement;
    const [authorization] = await asOwner<{ id: string }>(
      stack,
      'SELECT authorization_id AS id FROM card_transaction WHERE id = $1',
      [unlisted?.id],
    );
    await assertFound({
      missing_at_issuer: [
        { kind: 'transaction', id: unlisted?.id, issuer_id: purchase?.id },
        { kind: 'transaction', id: authorization?.id, issuer_id: removed.id },
      ],
      different: [{ kind: 'transaction', id: differing?.id, issuer_id: settled.id }],
    });
    settled.amount = 400;
    payments.push(removed);
  });

  describe('on what began before the period', () => {
    const DAY_MS = 86_400_000;
    /** As the nightly run's beginning, just now, so that all that was made before is older. */
    const sinceNow = () => new Date().toISOString();

    /** An authorization whose payment is older than every period here, and still open. */
    async function oldAuthorization(amount: number) {
      const card = await atIssuer();
      fake.bank.aheadMs = -6 * DAY_MS;
      const { pending_transaction: pending } = await fake.simulations.authorize({ card_id: card.id, amount });
      fake.bank.aheadMs = 0;
      assert.ok(pending);
      return { card_id: card.id, pending_transaction_id: pending.id };
    }

    /** Does something that Increase never tells us. */
    async function untold<Done>(act: () => Done): Promise<Done> {
      await fake.delivery.idle();
      // An event that is still to be read would find it.
      await inboxRead(stack);
      fake.delivery.hold();
      const done = act();
      fake.delivery.release(() => []);
      await fake.delivery.idle();
      return done;
    }

    it('misses nothing if the issuer has it in a payment that it lists no more', async () => {
      const settlement = fake.simulations.settle(await oldAuthorization(300));
      await until('the purchase is booked', async () => (await transactions()).length === 1);
      fake.simulations.refund(settlement, 100);
      await until('the refund is booked', async () => (await transactions()).length === 2);
      await assertFound({});
    });

    it('finds a refund that the issuer does not have in an old payment', async () => {
      const settlement = fake.simulations.settle(await oldAuthorization(300));
      const payment = fake.simulations.refund(settlement, 100);
      await until('both are booked', async () => (await transactions()).length === 2);
      const [removed] = payment.elements.splice(-1);
      assert.ok(removed);
      const refund = (await transactions()).find(({ type }) => type === 'refund');
      await assertFound({
        missing_at_issuer: [{ kind: 'transaction', id: refund?.id, issuer_id: removed.card_refund?.id }],
      });
      payment.elements.push(removed);
    });

    it('books the lost clearing of an authorization that is pending here, once', async () => {
      const authorized = await oldAuthorization(300);
      const settlement = await untold(() => fake.simulations.settle(authorized));
      const since = sinceNow();
      const found = await reconcile(since);
      const [booked] = await transactions();
      assert.deepEqual([booked?.type, booked?.amount], ['purchase', 300]);
      assert.deepEqual(found.missing_here, [
        { kind: 'transaction', id: booked?.id, issuer_id: settlement.id, corrected: true },
      ]);
      await assertFound({}, since);
      assert.equal((await transactions()).length, 1);
    });

    it('finds the status of an old card that a late request has undone, and forgets it once it is right', async () => {
      const card = await atIssuer();
      const { created_at: createdAt } = card;
      card.created_at = new Date(Date.now() - 40 * DAY_MS).toISOString();
      const since = sinceNow();
      for (const verb of ['freeze', 'unfreeze'] as const) {
        const { status } = await changeStatus(holder.partner, holder.cardId, verb, { mode: 'live' });
        assert.equal(status, 200);
      }
      card.status = 'disabled';
      const different: Entry[] = [{ kind: 'card', id: holder.cardId, issuer_id: card.id }];
      await assertFound({ different }, since);
      // The change is older than this period, and the card still differs.
      await assertFound({ different }, sinceNow());
      assert.equal((await attention()).length, 1);
      const { cards } = fake.bank.books;
      const [removed] = cards.splice(cards.indexOf(card), 1);
      assert.ok(removed);
      await assertFound({ missing_at_issuer: different }, since);
      cards.push(removed);
      card.status = 'active';
      await assertFound({}, sinceNow());
      card.created_at = createdAt;
    });
  });

  describe('on what this release cannot read', () => {
    it('compares all others, and says which objects they were', async () => {
      const card = await atIssuer();
      const { account_id: cardAccountId } = card;
      const payments = [];
      for (const amount of [100, 200, 300]) {
        await fake.simulations.authorize({ card_id: card.id, amount });
        payments.push(fake.bank.books.payments.at(-1));
      }
      await fake.delivery.idle();
      const [, unreadable] = payments;
      const transfer = fake.bank.books.transfers.find((it) => it.destination_account_id === cardAccountId);
      assert.ok(unreadable && transfer);
      unreadable.card_id = '';
      transfer.status = 'in_doubt' as 'complete';
      const [other] = fake.bank.books.payments.splice(-1);
      assert.ok(other);

      // What can't be read is not missing; what was removed is.
      const found = await reconcile();
      assert.deepEqual(found.different, [
        { kind: 'movement', id: null, issuer_id: transfer.id },
        { kind: 'transaction', id: null, issuer_id: unreadable.id },
      ]);
      assert.deepEqual(
        found.missing_at_issuer.map(({ issuer_id }: Entry) => issuer_id),
        [other.id],
      );
      const reasons = (await attention()).map(({ reason }) => reason).join('\n');
      assert.match(reasons, /can't read .*\(card_id\)/);
      unreadable.card_id = card.id;
      transfer.status = 'complete';
      fake.bank.books.payments.push(other);
    });

    it('compares the lists if the set-up can not be looked at, and says so', async () => {
      const card = await atIssuer();
      card.status = 'disabled';
      fake.faults.add({ fault: 'not JSON', request: 'GET /event_subscriptions', times: 3 });
      assert.equal((await reconcile()).different.length, 1);
      const items: { kind: string; reason: string }[] = await operate('attention', 'list');
      const setUp = items.filter(({ kind }) => kind === 'network_setup');
      assert.deepEqual([setUp.length, items.length], [1, 2]);
      assert.match(setUp[0]?.reason ?? '', /could not be checked/);
      card.status = 'active';
    });
  });

  it('leaves nothing behind if it fails, nor what a run that died has left', async () => {
    await asOwner(stack, `INSERT INTO reconciliation_seen VALUES ($1, 'card', 'of a run that died')`, [
      lowestId('rec', new Date(Date.now() - 2 * 86_400_000)),
    ]);
    fake.faults.add({ fault: 'internal error', request: 'GET /card_payments' });
    await assert.rejects(reconcile(), /Increase: it answered 500/);
    fake.faults.clear();
    assert.deepEqual(await asOwner(stack, 'SELECT FROM reconciliation_seen'), []);
  });

  it('keeps what it finds if its clock is ahead of the database', async () => {
    const card = await atIssuer();
    card.status = 'disabled';
    mock.timers.enable({ apis: ['Date'], now: Date.now() + 120_000 });
    try {
      assert.equal((await reconcile()).different.length, 1);
    } finally {
      mock.timers.reset();
    }
    assert.equal((await attention()).length, 1);
    card.status = 'active';
  });

  it("asks once whether an account is a card's, however many transfers it has", async () => {
    const { bank } = fake;
    const other = bank.openAccount({ name: 'Payroll' }, null);
    const made = [1, 2, 3].map((amount) =>
      bank.transfer(
        {
          account_id: fake.fundingAccountId,
          destination_account_id: other.id,
          amount,
          description: 'payroll',
        },
        null,
      ),
    );
    // It looks up what the network posted of the card, and asks for cards then, too.
    await stack.stopWorker();
    try {
      fake.requests.length = 0;
      assert.deepEqual((await reconcile()).missing_here, []);
      // The list, and one about the account.
      assert.equal(fake.requests.filter((name) => name === 'GET /cards').length, 2);
    } finally {
      await stack.startWorker();
    }
    const { transfers } = bank.books;
    for (const transfer of made) transfers.splice(transfers.indexOf(transfer), 1);
  });

  it('is late after two days, even if it never succeeded', async () => {
    const set = (ageHours: number) =>
      asOwner(
        stack,
        `UPDATE measurement SET measured_at = NULL, result = NULL, created_at = now() - $1 * interval '1 hour' WHERE name = 'reconciliation'`,
        [ageHours],
      );
    await set(49);
    assert.deepEqual(await operate('attention', 'list'), []);
    await set(51);
    const [item, ...others] = await operate('attention', 'list');
    assert.deepEqual([item.kind, others], ['network_reconciliation', []]);
  });

  describe('on true-ups of a blocked card', () => {
    interface TrueUp {
      id: string;
      token: string;
      status: string;
    }

    async function returned(): Promise<TrueUp> {
      const [row] = await asOwner<TrueUp>(stack, 'SELECT id, token, status FROM true_up WHERE card_id = $1', [
        holder.cardId,
      ]);
      assert.ok(row);
      return row;
    }
    const transferWith = (token: string) => {
      const found = fake.bank.books.transfers.find(({ idempotency_key: key }) => key === token);
      assert.ok(found, token);
      return found;
    };

    async function block(): Promise<TrueUp> {
      const { status, text } = await changeStatus(holder.partner, holder.cardId, 'block', { mode: 'live' });
      assert.equal(status, 200, text);
      await until('the money is back', async () => (await returned()).status === 'succeeded');
      return returned();
    }

    it('finds nothing if it was returned', async () => {
      await block();
      // The card, its load and the true-up.
      const { matched, ...others } = await reconcile();
      assert.ok(matched >= 3);
      assert.deepEqual(others, NOTHING);
    });

    it('finds another amount, and one that failed there', async () => {
      const { id, token } = await block();
      const transfer = transferWith(token);
      const different: Entry[] = [{ kind: 'movement', id, issuer_id: transfer.id }];
      transfer.amount -= 1;
      await assertFound({ different });
      const [item] = await attention();
      assert.match(
        item?.reason ?? '',
        /^true-up of 1000 cents, succeeded, here; 999 cents, succeeded, at the issuer/,
      );
      transfer.amount += 1;
      transfer.status = 'canceled';
      await assertFound({ different });
      transfer.status = 'complete';
    });

    it('finds one that the issuer does not have', async () => {
      const { id, token } = await block();
      const { transfers } = fake.bank.books;
      const transfer = transferWith(token);
      transfers.splice(transfers.indexOf(transfer), 1);
      await assertFound({ missing_at_issuer: [{ kind: 'movement', id, issuer_id: null }] });
      transfers.push(transfer);
    });

    it('finds one that only the issuer knows', async () => {
      const card = await atIssuer();
      const { bank } = fake;
      const unknown = bank.transfer(
        {
          account_id: card.account_id,
          destination_account_id: fake.fundingAccountId,
          amount: 10,
          description: 'unknown',
        },
        newId('tru'),
      );
      await assertFound({ missing_here: [{ kind: 'movement', id: null, issuer_id: unknown.id }] });
      bank.books.transfers.splice(bank.books.transfers.indexOf(unknown), 1);
    });

    it('finds one that was made after all, though we had it refused, asked again or dismissed', async () => {
      const { id, token } = await block();
      const transfer = transferWith(token);
      const set = (values: string) => asOwner(stack, `UPDATE true_up SET ${values} WHERE id = '${id}'`);
      const different: Entry[] = [{ kind: 'movement', id, issuer_id: transfer.id }];
      await set("status = 'refused', reason = 'no', ended_at = NULL");
      await assertFound({ different });
      await set("status = 'dismissed', reason = NULL, ended_at = now()");
      await assertFound({ different });
      // Asked again with another token, by an operator who could not see the first one: both were made.
      const second = newId('tru');
      const again = fake.bank.transfer(
        {
          account_id: transfer.account_id,
          destination_account_id: transfer.destination_account_id,
          amount: 0,
          description: second,
        },
        second,
      );
      again.amount = transfer.amount;
      await set(`status = 'succeeded', token = '${second}'`);
      await assertFound({ different });
      assert.match((await attention())[0]?.reason ?? '', /asked for again with another token, here/);
      // The usual case: the first one had failed.
      transfer.status = 'canceled';
    });
  });

  it('compares true-ups to a card, too', async () => {
    const card = await atIssuer();
    const trueUps = () =>
      asOwner<{ id: string; status: string; amount_cents: string }>(
        stack,
        "SELECT id, status, amount_cents FROM true_up WHERE card_id = $1 AND direction = 'to_card'",
        [holder.cardId],
      );
    fake.simulations.settle({ card_id: card.id, amount: 5_000 });
    await until('the card is covered', async () => (await trueUps())[0]?.status === 'succeeded');
    const { matched, ...others } = await reconcile();
    // The card, its load, the purchase and the true-up.
    assert.ok(matched >= 4);
    assert.deepEqual(others, NOTHING);

    const [trueUp] = await trueUps();
    const { transfers } = fake.bank.books;
    const transfer = transfers.find(({ idempotency_key: key }) => key === trueUp?.id);
    assert.ok(transfer);
    transfer.amount -= 1;
    await assertFound({ different: [{ kind: 'movement', id: trueUp?.id, issuer_id: transfer.id }] });
    const [item] = await attention();
    assert.match(item?.reason ?? '', /^true-up of \d+ cents, succeeded, here/);
    transfer.amount += 1;
    transfers.splice(transfers.indexOf(transfer), 1);
    await assertFound({ missing_at_issuer: [{ kind: 'movement', id: trueUp?.id, issuer_id: null }] });
    transfers.push(transfer);
  });

  it('finds a status that a late request has undone', async () => {
    for (const verb of ['freeze', 'unfreeze'] as const) {
      assert.equal((await changeStatus(holder.partner, holder.cardId, verb, { mode: 'live' })).status, 200);
    }
    // The freeze's request once more: something between us delivered it twice, and late.
    const card = await atIssuer();
    const late = await fetch(`${fake.url}/cards/${card.id}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${fake.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ status: 'disabled' }),
    });
    assert.equal(late.status, 200);
    await assertFound({ different: [{ kind: 'card', id: holder.cardId, issuer_id: card.id }] });
    // The way out: the change is made again.
    for (const verb of ['freeze', 'unfreeze'] as const) {
      assert.equal((await changeStatus(holder.partner, holder.cardId, verb, { mode: 'live' })).status, 200);
    }
  });

  it('asks again for a page that fails: with a 500, a 429, a lost answer, or none', async () => {
    const card = await atIssuer();
    card.status = 'disabled';
    fake.faults.add({ fault: 'internal error', request: 'GET /cards', times: 1 });
    fake.faults.add({ fault: 'rate limited', request: 'GET /cards', times: 1 });
    fake.faults.add({ fault: 'lost before acting', request: 'GET /account_transfers', times: 1 });
    fake.faults.add({ fault: 'hang', request: 'GET /account_transfers', times: 1 });
    fake.faults.add({ fault: 'not JSON', request: 'GET /card_payments', times: 2 });
    assert.equal((await reconcile()).different.length, 1);
    fake.faults.clear();
    card.status = 'active';
  });

  it('ends nothing if the issuer does not answer', async () => {
    const card = await atIssuer();
    card.status = 'disabled';
    await reconcile();
    const items = await attention();
    assert.equal(items.length, 1);
    card.status = 'active';
    fake.faults.add({ fault: 'internal error' });
    await assert.rejects(reconcile(), /Increase: it answered 500/);
    assert.deepEqual(await attention(), items);
    fake.faults.clear();
  });

  it('is done by one worker when it is due, which also looks how the network is set up', async () => {
    const card = await atIssuer();
    card.status = 'disabled';
    const [subscription] = fake.bank.books.subscriptions.splice(0, 1);
    assert.ok(subscription);
    await asOwner(stack, `UPDATE measurement SET due_at = '-infinity' WHERE name = 'reconciliation'`);
    await stack.stopWorker();
    const others = [await stack.startWorker(), await stack.startWorker()];
    const found = await until('it has run', async () => {
      const items: { kind: string; reason: string }[] = await operate('attention', 'list');
      const kinds = items.map(({ kind }) => kind);
      return kinds.includes('network_difference') && kinds.includes('network_setup') ? items : undefined;
    });
    assert.match(found.map(({ reason }) => reason).join(), /Increase has no active event subscription/);
    const runs = () =>
      stack.logLines.filter((line) => line.includes('compared our record with the card network'));
    await until('it is logged', async () => runs().length > 0);
    await fake.delivery.idle();
    assert.equal(runs().length, 1);
    card.status = 'active';
    fake.bank.books.subscriptions.unshift(subscription);
    await Promise.all(others.map((worker) => worker.stop()));
    await stack.startWorker();
  });
});
