import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { FakeIncrease } from '../../../dev/increase/fake-increase.ts';
import { readAttention } from '../../../exports/attention.ts';
import {
  type IncreaseCard,
  liveCard,
  read,
  startIncreaseStack,
  untilRead,
} from '../../support/adapters/increase-stack.ts';
import { issueCard, reveal, revealingPartner } from '../../support/api/reveals.ts';
import { createCard, settledCard } from '../../support/cards.ts';
import { startInboxAlone } from '../../support/inbox.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { environmentOf, operateIn } from '../../support/operator/operate.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

type Order = <Item>(items: Item[]) => Item[];

describe('live mode on Increase', () => {
  let stack: TestStack;
  let fake: FakeIncrease;
  let stop: () => Promise<void>;
  before(async () => {
    ({ stack, fake, stop } = await startIncreaseStack());
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stop();
  });
  afterEach(() => {
    fake.faults.clear();
    fake.bank.transfersNeedApproval = false;
  });

  const centsOf = ({ networkCardId }: IncreaseCard) =>
    fake.bank.books.cents[fake.bank.card(networkCardId).account_id] ?? 0;
  const post = ({ partner, cardId }: IncreaseCard, verb: string, body: object = {}) =>
    partner.call('POST', `/cards/${cardId}/${verb}`, { mode: 'live', body, idempotencyKey: randomUUID() });

  it('issues, tops up, withdraws and changes a card, and the issuer has the same money', async () => {
    const card = await liveCard(stack);
    assert.equal((await post(card, 'topups', { amount: 700 })).status, 201);
    assert.equal((await post(card, 'withdrawals', { amount: 300 })).status, 201);
    assert.equal((await read(card)).balance, 10_400);
    assert.equal(centsOf(card), 10_400);
    const bought = fake.simulations.settle({ card_id: card.networkCardId, amount: 900 });
    for (const [verb, status] of [
      ['freeze', 'disabled'],
      ['unfreeze', 'active'],
      ['block', 'canceled'],
    ] as const) {
      assert.equal((await post(card, verb)).status, 200, verb);
      assert.equal(fake.bank.card(card.networkCardId).status, status);
    }
    await until('the money of the blocked card is back in the funding account', () => centsOf(card) === 0);
    fake.simulations.refund(bought, 900);
    assert.equal(centsOf(card), 900);
    await untilRead(stack, fake);
    await until('so is what was refunded later', () => centsOf(card) === 0);
    assert.equal((await card.partner.call('GET', '/balance', { mode: 'live' })).json.held, 0);
  });

  it('reveals a card, and writes its number nowhere', async () => {
    const partner = await revealingPartner(stack);
    const cardId = await issueCard(partner, 'live');
    const { status, json } = await reveal(partner, cardId, 'live');
    assert.equal(status, 200);
    const card = fake.bank.books.cards.find(({ description }) => description === cardId);
    assert.equal(json.pan, fake.bank.books.pans[card?.id ?? '']);
    assert.ok(!stack.logLines.join('\n').includes(fake.bank.books.pans[card?.id ?? ''] ?? '?'));
  });

  it('waits for an approval at Increase, and learns of it from an event', async () => {
    const partner = await fundedPartner(stack);
    fake.bank.transfersNeedApproval = true;
    for (const [decide, status] of [
      ['approve', 'active'],
      ['cancel', 'failed'],
    ] as const) {
      const { json } = await createCard(partner, { amount: 5_000 }, { mode: 'live' });
      assert.equal(json.status, 'funding_pending');
      const transfer = await until('the transfer is there', () =>
        fake.bank.books.transfers.find(({ description }) => description === json.id),
      );
      fake.bank[decide](transfer.id);
      assert.equal((await settledCard(partner, json.id)).status, status);
    }
  });

  it('looks an operation up that has ended, if Increase has news of its transfer', async () => {
    const { cardId } = await liveCard(stack);
    await stack.stopWorker();
    const loaded = fake.bank.books.transfers.find(({ description }) => description === cardId);
    assert.ok(loaded);
    fake.bank.announce('account_transfer.updated', loaded.id);
    const stopInbox = await startInboxAlone(stack);
    const late = await until('it is to be looked up', async () => {
      const rows = await asOwner(stack, 'SELECT kind FROM late_answer WHERE id = $1', [cardId]);
      return rows.length > 0 && rows;
    });
    assert.deepEqual(late, [{ kind: 'card' }]);
    await stopInbox();
    await stack.startWorker();
  });

  it('shows a top-up that Increase carries out after a block, and moves its money back once it is booked', async () => {
    const card = await liveCard(stack);
    const operate = operateIn(environmentOf(stack.config));
    const attention = () => readAttention(stack.orm, { ...stack.config, taskQueuePrefix: '' });
    fake.bank.transfersNeedApproval = true;
    const { json: topup } = await post(card, 'topups', { amount: 700 });
    assert.equal(topup.status, 'pending');
    const transfer = await until('the transfer waits for an approval', () =>
      fake.bank.books.transfers.find(({ description }) => description === topup.id),
    );
    fake.bank.transfersNeedApproval = false;
    assert.equal((await post(card, 'block')).status, 200);
    const topupNow = async () =>
      (await card.partner.call('GET', `/topups/${topup.id}`, { mode: 'live' })).json;
    await until('the block has ended the top-up', async () => (await topupNow()).status === 'failed');
    await until("the blocked card's money is back", () => centsOf(card) === 0);
    const { json: before } = await card.partner.call('GET', '/balance', { mode: 'live' });

    fake.bank.approve(transfer.id);
    const item = await until('it is in attention list', async () =>
      (await attention()).find(({ id }) => id === topup.id),
    );
    assert.match(
      item.reason,
      /the network has loaded the card: book it now, without a fee; as the card is blocked/,
    );
    assert.equal(item.command, `npm run operator -- topup book ${topup.id} --reason "…"`);
    assert.equal(centsOf(card), 700);
    const booked = await operate('topup', 'book', topup.id, '--reason', 'it was approved late');
    assert.deepEqual([booked.code, booked.json?.status], [0, 'succeeded'], booked.err);
    const again = await operate('topup', 'book', topup.id, '--reason', 'it was approved late');
    assert.equal(again.code, 1);
    await until('Increase has moved it back', () => centsOf(card) === 0);
    const { status, fees, total_debited } = await topupNow();
    assert.deepEqual({ status, fees, total_debited }, { status: 'succeeded', fees: [], total_debited: 700 });
    assert.deepEqual((await card.partner.call('GET', '/balance', { mode: 'live' })).json, before);
    assert.ok(!(await attention()).some(({ id }) => id === topup.id));
  });

  describe("tells the same story of a card's payments when its events come", () => {
    const ORDERS: [string, Order][] = [
      ['in order', (items) => items],
      ['in reverse', (items) => items.toReversed()],
      ['three times each', (items) => items.flatMap((item) => [item, item, item])],
      ['once for all', (items) => items.slice(-1)],
    ];
    for (const [how, order] of ORDERS) {
      it(how, async () => {
        const card = await liveCard(stack);
        fake.delivery.hold();
        const payment = await fake.simulations
          .authorize({
            card_id: card.networkCardId,
            amount: 3_000,
            network_details: { visa: { stand_in_processing_reason: 'other' } },
          })
          .then(() => fake.bank.books.payments.at(-1));
        assert.ok(payment);
        const pending_transaction_id = payment.elements[0]?.card_authorization?.pending_transaction_id ?? '';
        const card_payment_id = payment.id;
        await fake.simulations.reverse({ card_payment_id, amount: 500 });
        fake.simulations.settle({ card_id: card.networkCardId, amount: 1_000, pending_transaction_id }, true);
        const last = fake.simulations.settle({
          card_id: card.networkCardId,
          amount: 800,
          pending_transaction_id,
        });
        fake.simulations.refund(last, 300);
        fake.delivery.release((held) =>
          order(held.filter(({ associated_object_id }) => associated_object_id === card_payment_id)),
        );
        await untilRead(stack, fake);
        const { balance, available_balance } = await read(card);
        assert.deepEqual([balance, available_balance], [8_500, 8_500]);
        const [authorization] = (await read(card, '/authorizations')).data;
        const { status, amount, settled_amount, held_amount } = authorization;
        assert.deepEqual([status, amount, settled_amount, held_amount], ['closed', 2_500, 1_800, 0]);
        const { data } = await read(card, '/transactions');
        assert.deepEqual(
          data.map(({ type, amount }: { type: string; amount: number }) => `${type} ${amount}`).sort(),
          ['purchase 1000', 'purchase 800', 'refund 300'],
        );
      });
    }
  });
});
