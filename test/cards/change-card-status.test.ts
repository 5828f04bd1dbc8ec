import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Mode } from '../../domain/mode.ts';
import type { StatusChangeRequest } from '../../issuers/card-network.ts';
import { takeMessages } from '../../payments/take-messages.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { query } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
import {
  assertOneOrder,
  cardIn,
  changeStatus,
  claimUnderWay,
  networkStatus,
  openCards,
  statusClaims,
  type Verb,
} from '../support/card-status.ts';
import { createCard, eventTypes, readCardRow } from '../support/cards.ts';
import { messageOf, settlementOf } from '../support/commands/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../support/money.ts';
import type { Answer, TestPartner, TestStack } from '../support/stack.ts';
import { transfer } from '../support/transfers.ts';
import {
  answerLost,
  refused,
  startUnrulyStack,
  type UnrulyNetwork,
  unavailable,
} from '../support/unruly-network.ts';

const FROZEN = ['card.issued', 'card.frozen'];
/** What a card of $100 costs beside what is on it: that stays spent. */
const FEES_CENTS = priceOf(10_000) - 10_000;

describe('a change of a card’s status', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let network: UnrulyNetwork;
  before(async () => {
    ({ stack, network } = await startUnrulyStack(60_000));
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  describe('a live status change', () => {
    let cardId: string;
    beforeEach(async () => {
      cardId = await cardIn(stack, partner, 'live', 'active');
      network.asked.length = 0;
    });
    afterEach(() => {
      assert.equal(network.next.length, 0, 'the network was not asked as often as the test thought');
    });
    const change = (verb: 'freeze' | 'unfreeze' | 'block', idempotencyKey = randomUUID()) =>
      changeStatus(partner, cardId, verb, { mode: 'live', idempotencyKey });

    async function assertBoth(status: string, events: readonly string[]): Promise<void> {
      assert.equal((await readCardRow(stack, cardId))?.status, status);
      assert.equal(await networkStatus(stack, cardId), status);
      assert.deepEqual(await eventTypes(stack, cardId), events);
      assert.equal(await claimUnderWay(stack, cardId), null);
    }

    for (const [what, fault] of [
      ['answers 503', unavailable],
      ['acts but its answer is lost', answerLost],
    ] as const) {
      it(`is requested with the same token, and made once, if the network ${what} three times`, async () => {
        network.next.push(fault, fault, fault);
        const answer = await change('freeze');
        assert.equal(answer.status, 200, answer.text);
        await assertBoth('frozen', FROZEN);
        const tokens = new Set(network.asked.map(({ token }) => token));
        assert.deepEqual([network.asked.length, tokens.size], [4, 1]);
      });
    }

    it('ignores an answer that arrives after it was requested again', async () => {
      const late = Promise.withResolvers<void>();
      network.next.push(async (ask) => {
        const answer = await ask();
        await late.promise;
        return answer;
      });
      const answer = await change('freeze');
      assert.equal(answer.status, 200, answer.text);
      assert.equal(network.asked.length, 2);
      assert.equal((await change('unfreeze')).status, 200);
      late.resolve();
      assert.equal((await change('freeze')).status, 200);
      await assertBoth('frozen', [...FROZEN, 'card.unfrozen', 'card.frozen']);
    });

    it('is answered 409 with the unchanged status if the network refuses, also on a retry, and the next one is possible', async () => {
      network.next.push(refused);
      const key = randomUUID();
      const answer = await change('freeze', key);
      expectError(answer, 'invalid_state');
      assert.match(answer.json.error.message, /network refused.* The card is still active\.$/);
      await assertBoth('active', ['card.issued']);
      assert.equal((await change('freeze', key)).text, answer.text);
      assert.equal((await change('freeze')).status, 200);
      await assertBoth('frozen', FROZEN);
    });

    it('is answered 409 for an unfreeze if the network has blocked the card, and a block is possible', async () => {
      assert.equal((await change('freeze')).status, 200);
      await network.ask({
        ...network.asked[0],
        token: newId('claim'),
        cardStatus: 'blocked',
      } as StatusChangeRequest);
      expectError(await change('unfreeze'), 'invalid_state');
      assert.equal((await change('block')).status, 200);
      await assertBoth('blocked', [...FROZEN, 'card.blocked']);
    });
  });

  it('keeps its refusal, as a transfer does, if the creation of its card is refused afterwards', async () => {
    const asked = Promise.withResolvers<void>();
    const hold = Promise.withResolvers<void>();
    network.issuances = async <Answer>() => {
      asked.resolve();
      await hold.promise;
      return { status: 'declined', reason: 'in_a_test' } as Answer;
    };
    const creating = createCard(partner, { amount: 10_000 }, { mode: 'live' });
    await asked.promise;
    const [card] = (await partner.call('GET', '/cards', { mode: 'live' })).json.data;
    const ask = (what: string, idempotencyKey: string) => {
      const body = what === 'topups' || what === 'withdrawals' ? { amount: 500 } : undefined;
      return partner.call('POST', `/cards/${card.id}/${what}`, { mode: 'live', idempotencyKey, body });
    };
    const refused = new Map<string, Answer>();
    for (const what of ['freeze', 'unfreeze', 'block', 'topups', 'withdrawals'])
      refused.set(what, await ask(what, `${card.id} ${what}`));
    for (const answer of refused.values()) expectError(answer, 'invalid_state');
    hold.resolve();
    expectError(await creating, 'provider_declined');
    network.issuances = (ask) => ask();
    for (const [what, answer] of refused) {
      expectReplay(await ask(what, `${card.id} ${what}`), answer);
      expectError(await ask(what, randomUUID()), 'card_not_found');
    }
  });

  describe('simultaneous opposite status changes', () => {
    let cardId: string;
    beforeEach(async () => {
      cardId = await cardIn(stack, partner, 'live', 'active');
    });
    afterEach(() => {
      network.usual = (ask) => ask();
    });

    async function changeAtOnce(verbs: readonly Verb[]): Promise<string[]> {
      const answers = await Promise.all(
        verbs.map((verb) => changeStatus(partner, cardId, verb, { mode: 'live' })),
      );
      const order = await assertOneOrder(stack, cardId, answers);
      assert.equal((await statusClaims(stack, cardId)).length, verbs.length);
      return order;
    }

    it('come to one order for 8 freezes and 8 unfreezes with a faulty network', async () => {
      let count = 0;
      network.usual = async (ask) => {
        count += 1;
        if (count % 7 === 3) return answerLost(ask);
        return count % 7 === 5 ? unavailable(ask) : ask();
      };
      const verbs = Array.from({ length: 16 }, (_, index): Verb => (index % 2 === 0 ? 'freeze' : 'unfreeze'));
      const order = await changeAtOnce(verbs);
      assert.ok(order.length > 0);
      for (const [index, to] of order.entries()) assert.equal(to, index % 2 === 0 ? 'frozen' : 'active');
    });

    it('end blocked if blocks are among them, and the card’s money is released once', async () => {
      const verbs = Array.from({ length: 5 }, () => ['freeze', 'block', 'unfreeze'] as const).flat();
      const order = await changeAtOnce(verbs);
      assert.deepEqual([order.indexOf('blocked'), order.at(-1)], [order.length - 1, 'blocked']);
      await assertBalance(stack, partner, 'live', { spentCents: FEES_CENTS, heldCents: 0 });
    });

    it('are judged one after the other in test mode as well', async () => {
      const testCard = await cardIn(stack, partner, 'test', 'active');
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, index) =>
          changeStatus(partner, testCard, index % 2 === 0 ? 'freeze' : 'unfreeze'),
        ),
      );
      const made = answers.filter(({ status }) => status === 200);
      assert.ok(answers.every(({ status, json }) => status === 200 || json.error.code === 'invalid_state'));
      const events = (await eventTypes(stack, testCard)).slice(1);
      assert.equal(events.length, made.length);
      assert.equal(events.filter((type) => type === 'card.frozen').length, Math.ceil(events.length / 2));
      const status = events.length % 2 === 0 ? 'active' : 'frozen';
      assert.equal((await readCardRow(stack, testCard))?.status, status);
    });
  });

  describe('POST /cards/{cardId}/block', () => {
    const block = (cardId: string, mode: Mode, key = randomUUID()) =>
      changeStatus(partner, cardId, 'block', { mode, idempotencyKey: key });

    for (const mode of ['test', 'live'] as const) {
      for (const status of ['active', 'frozen'] as const) {
        it(`releases exactly the balance of a card that is ${status}, once, in ${mode} mode`, async () => {
          const cardId = await cardIn(stack, partner, mode, status);
          const other = await cardIn(stack, partner, mode, 'active');
          assert.equal(await openCards(stack, partner, mode), 2);
          const key = randomUUID();
          const answer = await block(cardId, mode, key);
          assert.deepEqual([answer.status, answer.json.status, answer.json.balance], [200, 'blocked', 0]);
          assert.equal((await block(cardId, mode, key)).text, answer.text);
          expectError(await block(cardId, mode), 'invalid_state');

          const spentCents = FEES_CENTS + priceOf(10_000);
          await assertBalance(stack, partner, mode, { spentCents, heldCents: 0 });
          assert.equal(await openCards(stack, partner, mode), 1);
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
          takeMessages(tx, [
            messageOf(settlementOf({ partnerId: partner.id, mode }, cardId, { amountCents: 10_000 })),
          ]),
        );
        const before = (await partner.call('GET', '/balance', { mode })).json;
        const answer = await block(cardId, mode);
        assert.deepEqual([answer.status, answer.json.status, answer.json.balance], [200, 'blocked', 0]);
        assert.deepEqual((await partner.call('GET', '/balance', { mode })).json, before);
        assert.equal(await openCards(stack, partner, mode), 0);
      });
    }

    for (const [answer, status] of [
      ['yes', 201],
      ['no', 402],
    ] as const) {
      it(`lets a withdrawal that had no response yet end as the network says (${answer}), and loses no cent`, async () => {
        const cardId = await cardIn(stack, partner, 'live', 'active');
        const asked = Promise.withResolvers<void>();
        const hold = Promise.withResolvers<void>();
        network.transfers = async (ask) => {
          const said = answer === 'yes' ? await ask() : { status: 'declined' as const, reason: 'in_a_test' };
          asked.resolve();
          await hold.promise;
          return said;
        };
        const waiting = transfer('withdrawal', { partner, mode: 'live', cardId }, 4_000);
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
        network.transfers = (ask) => ask();
        await assertBalance(stack, partner, 'live', { spentCents: FEES_CENTS, heldCents: 0 });
        const { json: card } = await partner.call('GET', `/cards/${cardId}`, { mode: 'live' });
        assert.deepEqual([card.balance, card.available_balance], [0, 0]);
        const told = answer === 'yes' ? ['withdrawal.succeeded'] : [];
        assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.blocked', ...told]);
      });
    }
  });
});
