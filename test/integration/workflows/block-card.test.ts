import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { settleTransaction } from '../../../commands/settlement/settle-transactions.ts';
import { query } from '../../../db/sql.ts';
import { transaction } from '../../../db/transaction.ts';
import type { Mode } from '../../../domain/mode.ts';
import { expectError } from '../../support/api/answers.ts';
import { cardIn, changeStatus } from '../../support/card-status.ts';
import { eventTypes } from '../../support/cards.ts';
import { settlementOf } from '../../support/commands/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../../support/money.ts';
import type { Answer, TestPartner, TestStack } from '../../support/stack.ts';
import { startUnrulyStack, type UnrulyNetwork } from '../../support/unruly-network.ts';
import { withdraw } from '../../support/withdrawals.ts';

/** What a card of $100 costs beside what is on it: that stays spent. */
const FEES_CENTS = priceOf(10_000) - 10_000;

describe('POST /cards/{cardId}/block', function () {
  this.timeout(120_000);
  let stack: TestStack;
  let partner: TestPartner;
  let network: UnrulyNetwork;
  before(async () => {
    ({ stack, network } = await startUnrulyStack(30_000));
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  async function openCards(mode: Mode): Promise<number | undefined> {
    const [usage] = await query<{ open_cards: number }>(
      stack.orm.em.fork(),
      'SELECT open_cards FROM account_usage WHERE partner_id = $1 AND mode = $2',
      [partner.id, mode],
    );
    return usage?.open_cards;
  }

  const block = (cardId: string, mode: Mode, key = randomUUID()) =>
    changeStatus(partner, cardId, 'block', { mode, idempotencyKey: key });

  const topUp = (cardId: string, amount: number): Promise<Answer> =>
    partner.call('POST', `/cards/${cardId}/topups`, {
      mode: 'live',
      body: { amount },
      idempotencyKey: randomUUID(),
    });

  for (const mode of ['test', 'live'] as const) {
    for (const status of ['active', 'frozen'] as const) {
      it(`releases exactly the balance of a card that is ${status}, once, in ${mode} mode`, async () => {
        const cardId = await cardIn(stack, partner, mode, status);
        const other = await cardIn(stack, partner, mode, 'active');
        assert.equal(await openCards(mode), 2);
        const key = randomUUID();
        const answer = await block(cardId, mode, key);
        assert.deepEqual([answer.status, answer.json.status, answer.json.balance], [200, 'blocked', 0]);
        assert.equal((await block(cardId, mode, key)).text, answer.text);
        expectError(await block(cardId, mode), 'invalid_state');

        const spentCents = FEES_CENTS + priceOf(10_000);
        await assertBalance(stack, partner, mode, { spentCents, heldCents: 0 });
        assert.equal(await openCards(mode), 1);
        const [released] = await query(
          stack.orm.em.fork(),
          'SELECT code, amount::int FROM ledger.transfer WHERE operation_id = $1',
          [`block/${cardId}`],
        );
        assert.deepEqual(released, { code: 'block_release', amount: 10_000 });
        assert.equal((await partner.call('GET', `/cards/${other}`, { mode })).json.balance, 10_000);
      });
    }

    it(`releases nothing if the card's balance is zero, in ${mode} mode`, async () => {
      const cardId = await cardIn(stack, partner, mode, 'active');
      await transaction(stack.orm, (tx) =>
        settleTransaction(tx, settlementOf({ partnerId: partner.id, mode }, cardId, { amountCents: 10_000 })),
      );
      const before = (await partner.call('GET', '/balance', { mode })).json;
      const answer = await block(cardId, mode);
      assert.deepEqual([answer.status, answer.json.status, answer.json.balance], [200, 'blocked', 0]);
      assert.deepEqual((await partner.call('GET', '/balance', { mode })).json, before);
      assert.equal(await openCards(mode), 0);
    });
  }

  it("fails the card's pending top-ups, releases what they hold, and writes their events", async () => {
    const cardId = await cardIn(stack, partner, 'live', 'active');
    const accepted = [await topUp(cardId, 5_047), await topUp(cardId, 6_047)];
    for (const { status, text } of accepted) assert.equal(status, 202, text);
    assert.equal((await block(cardId, 'live')).status, 200);

    for (const { json } of accepted) {
      const { json: ended } = await partner.call('GET', `/topups/${json.id}`, { mode: 'live' });
      assert.deepEqual([ended.status, ended.failure_code], ['failed', 'card_blocked']);
    }
    await assertBalance(stack, partner, 'live', { spentCents: FEES_CENTS, heldCents: 0 });
    assert.deepEqual((await eventTypes(stack, cardId)).sort(), [
      'card.blocked',
      'card.issued',
      'topup.failed',
      'topup.failed',
    ]);
    expectError(await topUp(cardId, 5_000), 'invalid_state');
  });

  for (const [answer, status] of [
    ['yes', 201],
    ['no', 402],
  ] as const) {
    it(`lets a withdrawal that had no response yet end as the network says (${answer}), and loses no cent`, async () => {
      const cardId = await cardIn(stack, partner, 'live', 'active');
      const asked = Promise.withResolvers<void>();
      const hold = Promise.withResolvers<void>();
      network.withdrawals = async (ask) => {
        const said = answer === 'yes' ? await ask() : { status: 'declined' as const, reason: 'in_a_test' };
        asked.resolve();
        await hold.promise;
        return said;
      };
      const waiting = withdraw({ partner, mode: 'live', cardId }, 4_000);
      await asked.promise;
      const blocked = await block(cardId, 'live');
      assert.deepEqual(
        [blocked.status, blocked.json.balance, blocked.json.available_balance],
        [200, 4_000, 0],
        blocked.text,
      );
      hold.resolve();
      const ended = await waiting;
      assert.equal(ended.status, status, ended.text);
      if (answer === 'no') expectError(ended, 'provider_declined');
      network.withdrawals = (ask) => ask();
      await assertBalance(stack, partner, 'live', { spentCents: FEES_CENTS, heldCents: 0 });
      const { json: card } = await partner.call('GET', `/cards/${cardId}`, { mode: 'live' });
      assert.deepEqual([card.balance, card.available_balance], [0, 0]);
      const told = answer === 'yes' ? ['withdrawal.succeeded'] : [];
      assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.blocked', ...told]);
    });
  }

  it('answers a top-up that had no response yet with 409, as if it came after the block', async () => {
    const cardId = await cardIn(stack, partner, 'live', 'active');
    const asked = Promise.withResolvers<void>();
    const hold = Promise.withResolvers<void>();
    network.topUps = async (ask) => {
      asked.resolve();
      await hold.promise;
      return ask();
    };
    const waiting = topUp(cardId, 5_000);
    await asked.promise;
    assert.equal((await block(cardId, 'live')).status, 200);
    expectError(await waiting, 'invalid_state');
    hold.resolve();
    await assertBalance(stack, partner, 'live', { spentCents: FEES_CENTS, heldCents: 0 });
    assert.deepEqual((await eventTypes(stack, cardId)).sort(), ['card.blocked', 'card.issued']);
  });
});
