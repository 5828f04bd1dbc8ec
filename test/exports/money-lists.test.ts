import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { authorizedCard, onAuthorization } from '../support/authorizations.ts';
import { createCard } from '../support/cards.ts';
import { column } from '../support/column.ts';
import { fundedPartner } from '../support/money.ts';
import { environmentOf, type Operate, operateIn } from '../support/operator/operate.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { transfer } from '../support/transfers.ts';

interface Item {
  id: string;
  type: string;
  amount: number;
  request_id: string | null;
  idempotency_key: string | null;
}

describe('the operator’s lists of whose money went where', () => {
  let stack: TestStack;
  let operate: Operate;
  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
  });

  const list = async (...args: string[]) => {
    const { code, json, err } = await operate(...args);
    assert.equal(code, 0, err);
    return json;
  };
  /** All of a list, a page of two at a time. */
  async function inPages(...args: string[]): Promise<Item[]> {
    const pages: Item[] = [];
    for (let last: string[] = []; ; ) {
      const page: Item[] = await list(...args, '--limit', '2', ...last);
      if (page.length === 0) return pages;
      pages.push(...page);
      last = ['--before', page.at(-1)?.id ?? ''];
    }
  }
  const topUp = (partner: TestPartner, cardId: string, mode: 'test' | 'live', key: string) =>
    partner.call('POST', `/cards/${cardId}/topups`, { body: { amount: 700 }, idempotencyKey: key, mode });

  for (const mode of ['test', 'live'] as const) {
    it(`tell two top-ups of a ${mode} card apart by the keys and the requests that made them`, async () => {
      const partner = await fundedPartner(stack);
      const card = (await createCard(partner, { amount: 10_000 }, { mode })).json;
      const other = (await createCard(partner, { amount: 2_000 }, { mode })).json;
      const keys = [randomUUID(), randomUUID()];
      const answers = [];
      for (const key of [...keys, keys[1] as string]) answers.push(await topUp(partner, card.id, mode, key));
      await topUp(partner, other.id, mode, randomUUID());
      const requestIds = answers.slice(0, 2).map(({ headers }) => headers.get('request-id'));

      const topUps: Item[] = await list('topup', 'list', '--card', card.id);
      const seen = topUps.map(({ request_id, idempotency_key }) => [request_id, idempotency_key]);
      assert.deepEqual(seen, [
        [requestIds[1], keys[1]],
        [requestIds[0], keys[0]],
      ]);

      const shown = await list('card', 'show', card.id);
      assert.deepEqual(
        column(shown.topups, 'id'),
        topUps.map(({ id }) => id),
      );
      assert.deepEqual(shown.topups[0].idempotency_key, keys[1]);
      assert.equal(
        shown.request.api_key_id,
        topUps[0] && (topUps[0] as never as { api_key_id: string }).api_key_id,
      );

      const withdrawn = [];
      for (const amount of [100, 300])
        withdrawn.push(await transfer('withdrawal', { partner, mode, cardId: other.id }, amount));
      const { withdrawals } = await list('card', 'show', other.id);
      assert.deepEqual(
        withdrawals.map((one: Item) => [one.id, one.amount, one.request_id]),
        withdrawn.reverse().map(({ json, headers }) => [json.id, json.amount, headers.get('request-id')]),
      );
      assert.deepEqual(shown.withdrawals, []);

      const ledger = ['ledger', 'transactions', partner.id, '--mode', mode];
      const all: Item[] = await list(...ledger);
      const balance = await list('ledger', 'balance', partner.id, '--mode', mode);
      assert.equal(
        all.reduce((sum, { amount }) => sum + amount, 0),
        balance.total,
      );
      const ofCard: Item[] = await list(...ledger, '--card', card.id);
      const types = ofCard.map(({ type }) => type).sort();
      assert.deepEqual(types, [
        'card_activation_fee',
        ...['card_funding_fee', 'card_funding_fee', 'card_funding_fee'],
        'card_issue',
        ...['card_topup', 'card_topup'],
      ]);
      assert.deepEqual(
        ofCard,
        all.filter(({ id }) => ofCard.some((one) => one.id === id)),
      );
      const ofTopUps = ofCard.filter(({ type }) => type === 'card_topup');
      assert.deepEqual(column(ofTopUps, 'idempotency_key'), [keys[1], keys[0]]);
      const ofOther: Item[] = await list(...ledger, '--card', other.id);
      assert.equal(ofOther.filter(({ type }) => type === 'card_withdrawal').length, 2);
      assert.deepEqual(await list(...ledger, '--since', '1h'), all);
      assert.deepEqual(await list(...ledger, '--since', '3000-01-01'), []);
    });
  }

  it('have the fees of a card’s transactions, and its release', async () => {
    const partner = await fundedPartner(stack);
    const cards = [];
    for (const amount of [5_000, 6_000]) cards.push((await createCard(partner, { amount })).json.id);
    for (const [cardId, amount] of [
      [cards[0], 100],
      [cards[1], 200],
      [cards[0], 300],
    ]) {
      const settled = await partner.call('POST', `/test/cards/${cardId}/simulate-transaction`, {
        body: { type: 'purchase', amount },
      });
      assert.equal(settled.status, 201, settled.text);
    }
    assert.equal((await partner.call('POST', `/cards/${cards[0]}/block`)).status, 200);
    const ledger: Item[] = await list(
      'ledger',
      'transactions',
      partner.id,
      '--mode',
      'test',
      '--card',
      cards[0],
    );
    const types = ledger.map(({ type }) => type).sort();
    assert.deepEqual(types, [
      ...['card_activation_fee', 'card_funding_fee', 'card_issue', 'card_release'],
      ...['transaction_fee', 'transaction_fee'],
    ]);
  });

  it('have what was held on a blocked card once it is free, on whichever page it is', async () => {
    const partner = await fundedPartner(stack);
    const card = await authorizedCard(partner, 5_000);
    const pending = [];
    for (const amount of [100, 200, 300, 400]) pending.push((await card.authorize(amount)).json.id);
    assert.equal((await card.change('block')).status, 200);
    for (const amount of [1_000, 2_000]) assert.equal((await card.forceCapture(amount)).status, 201);
    // What is released last is of the oldest.
    for (const id of pending.reverse())
      assert.equal((await onAuthorization(partner, id).expire()).status, 200);
    const ledger = ['ledger', 'transactions', partner.id, '--mode', 'test'];
    const all: Item[] = await list(...ledger);
    const ofCard: Item[] = await list(...ledger, '--card', card.id);
    assert.deepEqual(
      ofCard,
      all.filter(({ type }) => type !== 'faucet_credit' && type !== 'adjustment'),
    );
    const released = ofCard.filter(({ type }) => type === 'card_release');
    assert.deepEqual(column(released, 'amount'), [100, 200, 300, 400, 4_000]);
    assert.equal(ofCard.filter(({ type }) => type === 'late_debit').length, 2);
    assert.deepEqual(await inPages(...ledger, '--card', card.id), ofCard);
  });
});
