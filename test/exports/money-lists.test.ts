import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { post } from '../support/api/post.ts';
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
  api_key_id: string | null;
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
  /** How many items have each type. */
  const countOf = (items: Item[]) => {
    const counts: Record<string, number> = {};
    for (const { type } of items) counts[type] = (counts[type] ?? 0) + 1;
    return counts;
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
      assert.deepEqual(column(shown.topups, 'id'), column(topUps, 'id'));
      assert.deepEqual(shown.topups[0].idempotency_key, keys[1]);
      assert.equal(shown.request.api_key_id, topUps[0]?.api_key_id);

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
      const sum = all.reduce((soFar, { amount }) => soFar + amount, 0);
      assert.equal(sum, balance.total);
      const ofCard: Item[] = await list(...ledger, '--card', card.id);
      assert.deepEqual(countOf(ofCard), {
        card_topup: 2,
        card_funding_fee: 3,
        card_activation_fee: 1,
        card_issue: 1,
      });
      const ids = new Set(column(ofCard, 'id'));
      assert.deepEqual(
        ofCard,
        all.filter(({ id }) => ids.has(id)),
      );
      const ofTopUps = ofCard.filter(({ type }) => type === 'card_topup');
      assert.deepEqual(column(ofTopUps, 'idempotency_key'), [keys[1], keys[0]]);
      assert.equal(countOf(await list(...ledger, '--card', other.id)).card_withdrawal, 2);
      assert.deepEqual(await list(...ledger, '--since', '1h'), all);
      assert.deepEqual(await list(...ledger, '--since', '3000-01-01'), []);
    });
  }

  it('have the fees of a card’s transactions, and its release', async () => {
    const partner = await fundedPartner(stack);
    const cards = [];
    for (const amount of [5_000, 6_000]) cards.push((await createCard(partner, { amount })).json.id);
    for (const cardId of [cards[0], cards[1], cards[0]])
      await post(partner, `/test/cards/${cardId}/simulate-transaction`, { type: 'purchase', amount: 100 });
    await post(partner, `/cards/${cards[0]}/block`);
    const ofCard = ['ledger', 'transactions', partner.id, '--mode', 'test', '--card', cards[0]];
    assert.deepEqual(countOf(await list(...ofCard)), {
      card_release: 1,
      transaction_fee: 2,
      card_funding_fee: 1,
      card_activation_fee: 1,
      card_issue: 1,
    });
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
    assert.equal(countOf(ofCard).late_debit, 2);
    assert.deepEqual(await inPages(...ledger, '--card', card.id), ofCard);
  });
});
