import assert from 'node:assert/strict';
import { mock } from 'node:test';
import type { FakeIncrease } from '../../../dev/increase/fake-increase.ts';
import { lowestId, newId } from '../../../platform/crypto/new-id.ts';
import { increaseConfigOf } from '../../support/adapters/increase.ts';
import { startIncreaseStack } from '../../support/adapters/increase-stack.ts';
import { change, takeOut } from '../../support/adapters/issuers.ts';
import { networkIdOf } from '../../support/api/network-events.ts';
import { changeStatus } from '../../support/card-status.ts';
import { inboxRead } from '../../support/inbox.ts';
import { reconciler } from '../../support/operator/reconcile.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestStack } from '../../support/stack.ts';
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
  let stop: () => Promise<void>;
  let holder: Cardholder;
  let operator: ReturnType<typeof reconciler>;
  before(async () => {
    ({ fake, stack, stop } = await startIncreaseStack());
    const { apiKey, baseUrl, fundingAccountId } = increaseConfigOf(fake);
    operator = reconciler(stack, {
      INCREASE_API_KEY: apiKey,
      INCREASE_BASE_URL: baseUrl,
      INCREASE_FUNDING_ACCOUNT_ID: fundingAccountId,
    });
  });
  after(() => stop());
  beforeEach(async () => {
    holder = await cardholder(stack, 'live', 5_000);
  });
  afterEach(async () => {
    await assertFound({});
    assert.deepEqual(await operator.operate('attention', 'list'), []);
  });

  async function assertFound(expected: Partial<Found>, since?: string): Promise<void> {
    const { matched: _, ...found } = await operator.reconcile(since);
    assert.deepEqual(found, { ...NOTHING, ...expected });
  }

  /** The card of this test at the issuer. */
  async function atIssuer() {
    return fake.bank.card(await networkIdOf(stack, holder.cardId));
  }

  const transferByHand = (from: string, to: string, amount: number, key: string | null = null) =>
    fake.bank.transfer(
      { account_id: from, destination_account_id: to, amount, description: key ?? 'by hand' },
      key,
    );

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
    const { different } = await operator.reconcile();
    assert.equal(different[0]?.corrected, true);
    fake.onRequest = async () => 'go on';
    const { json } = await holder.partner.call('GET', `/cards/${holder.cardId}`, { mode: 'live' });
    assert.deepEqual([json.balance, json.available_balance], [1_000, 1_000 - 400 - 100]);
    fake.delivery.release();
    fake.simulations.reverse({ card_payment_id });
    await fake.delivery.idle();
    await inboxRead(stack);
  });

  it('finds transfers that only one side has, and what both have differently, until it is right', async () => {
    const { transfers } = fake.bank.books;
    const { account_id: cardAccountId } = await atIssuer();
    const [lost, changed, unread] = [
      await transfer('topup', holder, 300),
      await transfer('topup', holder, 500),
      await transfer('topup', holder, 100),
    ];
    const byHand = transferByHand(fake.fundingAccountId, cardAccountId, 700);
    const transferOf = (id: string) =>
      transfers.find(({ description }) => description === id) ?? assert.fail(id);
    const changedTransfer = transferOf(changed.json.id);
    const unreadTransfer = transferOf(unread.json.id);
    const undo = [
      takeOut(transfers, transferOf(lost.json.id)),
      change(changedTransfer, 'amount', 501),
      change(unreadTransfer, 'status', 'in_doubt' as 'complete'),
    ];
    await assertFound({
      missing_here: [{ kind: 'movement', id: null, issuer_id: byHand.id }],
      missing_at_issuer: [{ kind: 'movement', id: lost.json.id, issuer_id: null }],
      different: [
        { kind: 'movement', id: changed.json.id, issuer_id: changedTransfer.id },
        { kind: 'movement', id: null, issuer_id: unreadTransfer.id },
      ],
    });
    const reasons = (await operator.differences()).map(({ reason }) => reason).join('\n');
    assert.match(reasons, /^top-up of 500 cents, succeeded, here; 501 cents, succeeded, at the issuer/m);
    assert.match(reasons, /^top-up of 300 cents, succeeded, here, and the issuer does not list it/m);
    for (const one of undo) one();
    takeOut(transfers, byHand);
  });

  it("finds what was moved for a card while it had another one's id", async () => {
    const other = await cardholder(stack, 'live', 0);
    const [id, idOfOther] = [(await atIssuer()).id, await networkIdOf(stack, other.cardId)];
    const give = (cardId: string, networkCardId: string) =>
      asOwner(stack, 'UPDATE card SET network_card_id = $2 WHERE id = $1', [cardId, networkCardId]);
    const moved = [await transfer('topup', holder, 300), await transfer('withdrawal', holder, 200)];
    await give(holder.cardId, 'freed');
    await give(other.cardId, id);
    await give(holder.cardId, idOfOther);
    const { different } = await operator.reconcile();
    const ids = moved.map(({ json }) => json.id);
    assert.deepEqual(different.map((entry: Entry) => [entry.kind, entry.id]).sort(), [
      ['movement', ids[0]],
      ['movement', ids[1]],
    ]);
    const [item] = await operator.differences();
    assert.match(
      item?.reason ?? '',
      new RegExp(`cents moved money of ${id} at the issuer, where its card has`),
    );
    await give(holder.cardId, 'freed');
    await give(other.cardId, idOfOther);
    await give(holder.cardId, id);
  });

  it('finds the status of an old card that a late request has undone, and forgets it once it is changed again', async () => {
    const card = await atIssuer();
    const { created_at: createdAt } = card;
    card.created_at = new Date(Date.now() - 40 * 86_400_000).toISOString();
    /** As the nightly run's beginning, just now, so that all that was made before is older. */
    const sinceNow = () => new Date().toISOString();
    const since = sinceNow();
    const freezeAndUnfreeze = async () => {
      for (const verb of ['freeze', 'unfreeze'] as const) {
        const { status } = await changeStatus(holder.partner, holder.cardId, verb, { mode: 'live' });
        assert.equal(status, 200);
      }
    };
    await freezeAndUnfreeze();
    // The freeze's request once more: something between us delivered it twice, and late.
    card.status = 'disabled';
    const different: Entry[] = [{ kind: 'card', id: holder.cardId, issuer_id: card.id }];
    await assertFound({ different }, since);
    // The change is older than this period, and the card still differs.
    await assertFound({ different }, sinceNow());
    assert.equal((await operator.differences()).length, 1);
    const undo = takeOut(fake.bank.books.cards, card);
    await assertFound({ missing_at_issuer: different }, since);
    undo();
    await freezeAndUnfreeze();
    await assertFound({}, sinceNow());
    card.created_at = createdAt;
  });

  it('compares the lists if the set-up can not be looked at, and says so', async () => {
    const card = await atIssuer();
    card.status = 'disabled';
    fake.faults.add({ fault: 'not JSON', request: 'GET /event_subscriptions', times: 3 });
    assert.equal((await operator.reconcile()).different.length, 1);
    const items: { kind: string; reason: string }[] = await operator.operate('attention', 'list');
    const setUp = items.filter(({ kind }) => kind === 'network_setup');
    assert.deepEqual([setUp.length, items.length], [1, 2]);
    assert.match(setUp[0]?.reason ?? '', /could not be checked/);
    card.status = 'active';
  });

  it('leaves nothing behind if it fails, nor what a run that died has left', async () => {
    await asOwner(stack, `INSERT INTO reconciliation_seen VALUES ($1, 'card', 'of a run that died')`, [
      lowestId('rec', new Date(Date.now() - 2 * 86_400_000)),
    ]);
    fake.faults.add({ fault: 'internal error', request: 'GET /card_payments' });
    await assert.rejects(operator.reconcile(), /Increase: it answered 500/);
    fake.faults.clear();
    assert.deepEqual(await asOwner(stack, 'SELECT FROM reconciliation_seen'), []);
  });

  it('keeps what it finds if its clock is ahead of the database', async () => {
    const card = await atIssuer();
    card.status = 'disabled';
    mock.timers.enable({ apis: ['Date'], now: Date.now() + 120_000 });
    try {
      assert.equal((await operator.reconcile()).different.length, 1);
    } finally {
      mock.timers.reset();
    }
    assert.equal((await operator.differences()).length, 1);
    card.status = 'active';
  });

  it("asks once whether an account is a card's, however many transfers it has", async () => {
    const { bank } = fake;
    const other = bank.openAccount({ name: 'Payroll' }, null);
    const made = [1, 2, 3].map((amount) => transferByHand(fake.fundingAccountId, other.id, amount));
    // It looks up what the network posted of the card, and asks for cards then, too.
    await stack.stopWorker();
    try {
      fake.requests.length = 0;
      assert.deepEqual((await operator.reconcile()).missing_here, []);
      // The list, and one about the account.
      assert.equal(fake.requests.filter((name) => name === 'GET /cards').length, 2);
    } finally {
      await stack.startWorker();
    }
    const { transfers } = bank.books;
    for (const transfer of made) takeOut(transfers, transfer);
  });

  it('is late after two days, even if it never succeeded', async () => {
    const set = (ageHours: number) =>
      asOwner(
        stack,
        `UPDATE measurement SET measured_at = NULL, result = NULL, created_at = now() - $1 * interval '1 hour' WHERE name = 'reconciliation'`,
        [ageHours],
      );
    await set(49);
    assert.deepEqual(await operator.operate('attention', 'list'), []);
    await set(51);
    const [item, ...others] = await operator.operate('attention', 'list');
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

    it('finds one that failed there', async () => {
      const { id, token } = await block();
      const transfer = transferWith(token);
      transfer.status = 'canceled';
      await assertFound({ different: [{ kind: 'movement', id, issuer_id: transfer.id }] });
      transfer.status = 'complete';
    });

    it('finds one that only the issuer knows', async () => {
      const card = await atIssuer();
      const unknown = transferByHand(card.account_id, fake.fundingAccountId, 10, newId('tru'));
      await assertFound({ missing_here: [{ kind: 'movement', id: null, issuer_id: unknown.id }] });
      takeOut(fake.bank.books.transfers, unknown);
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
      const again = transferByHand(transfer.account_id, transfer.destination_account_id, 0, second);
      again.amount = transfer.amount;
      await set(`status = 'succeeded', token = '${second}'`);
      await assertFound({ different });
      assert.match(
        (await operator.differences())[0]?.reason ?? '',
        /asked for again with another token, here/,
      );
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
    const { matched, ...others } = await operator.reconcile();
    // The card, its load, the purchase and the true-up.
    assert.ok(matched >= 4);
    assert.deepEqual(others, NOTHING);

    const [trueUp] = await trueUps();
    const { transfers } = fake.bank.books;
    const transfer = transfers.find(({ idempotency_key: key }) => key === trueUp?.id);
    assert.ok(transfer);
    transfer.amount -= 1;
    await assertFound({ different: [{ kind: 'movement', id: trueUp?.id, issuer_id: transfer.id }] });
    const [item] = await operator.differences();
    assert.match(item?.reason ?? '', /^true-up of \d+ cents, succeeded, here/);
    transfer.amount += 1;
    const undo = takeOut(transfers, transfer);
    await assertFound({ missing_at_issuer: [{ kind: 'movement', id: trueUp?.id, issuer_id: null }] });
    undo();
  });

  it('is done by one worker when it is due, which also looks how the network is set up', async () => {
    const card = await atIssuer();
    card.status = 'disabled';
    const [subscription] = fake.bank.books.subscriptions.splice(0, 1);
    assert.ok(subscription);
    await asOwner(stack, `UPDATE measurement SET due_at = '-infinity' WHERE name = 'reconciliation'`);
    await stack.stopWorker();
    const soon = { around: { reconcileGraceMs: 10 } };
    const others = [await stack.startWorker(soon), await stack.startWorker(soon)];
    const found = await until('it has run', async () => {
      const items: { kind: string; reason: string }[] = await operator.operate('attention', 'list');
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
