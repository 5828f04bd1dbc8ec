import assert from 'node:assert/strict';
import { CardStatus } from '../../../domain/card-status.ts';
import { expectError } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';

describe('GET /cards', () => {
  let stack: TestStack;
  let partner: TestPartner;
  /** All of the account's test cards, newest first. */
  // biome-ignore lint/suspicious/noExplicitAny: cards as the API gives them.
  let cards: any[];
  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 1_000_000);
    const made = [];
    for (let i = 0; i < 25; i++)
      made.push(await createCard(partner, { amount: 100, external_ref: `r-${i}` }));
    assert.ok(made.every((answer) => answer.status === 201));
    cards = made.map((answer) => answer.json).sort((a, b) => (a.id < b.id ? 1 : -1));
    // What changes a card's status comes later; a list tells them apart already.
    for (const [index, status] of [
      [3, 'frozen'],
      [7, 'frozen'],
      [20, 'blocked'],
    ] as const) {
      await asOwner(stack, 'UPDATE card SET status = $2 WHERE id = $1', [cards[index].id, status]);
      cards[index] = { ...cards[index], status };
    }
  });

  const list = async (query = '') => {
    const answer = await partner.call('GET', `/cards${query}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  const ids = (some: { id: string }[]) => some.map((card) => card.id);

  it('lists the newest 20 by default in the list envelope, each as its own endpoint returns it', async () => {
    const page = await list();
    assert.deepEqual(page, {
      object: 'list',
      data: cards.slice(0, 20),
      has_more: true,
      next_cursor: cards[19].id,
    });
    assert.deepEqual((await partner.call('GET', `/cards/${cards[0].id}`)).json, page.data[0]);
  });

  for (const limit of [1, 5, 7, 24, 25, 26, 100]) {
    it(`lists all cards in pages of ${limit}`, async () => {
      const seen = [];
      let query = `?limit=${limit}`;
      for (;;) {
        const page = await list(query);
        seen.push(...page.data);
        const isLast: boolean = seen.length === cards.length;
        assert.deepEqual(
          [page.has_more, page.next_cursor, page.data.length],
          [!isLast, isLast ? null : seen.at(-1).id, isLast ? ((cards.length - 1) % limit) + 1 : limit],
        );
        if (isLast) break;
        query = `?limit=${limit}&starting_after=${page.next_cursor}`;
      }
      assert.deepEqual(seen, cards);
    });
  }

  it('has pages that stay the same while new cards arrive', async () => {
    const other = await fundedPartner(stack, 100_000);
    for (let i = 0; i < 6; i++) await createCard(other, { amount: 100 });
    const before = (await other.call('GET', '/cards')).json.data;
    const seen = [];
    let cursor: string | null = null;
    do {
      const page: { data: { id: string }[]; next_cursor: string | null } = (
        await other.call('GET', `/cards?limit=2${cursor === null ? '' : `&starting_after=${cursor}`}`)
      ).json;
      seen.push(...page.data);
      cursor = page.next_cursor;
      await createCard(other, { amount: 100 });
    } while (cursor !== null);
    assert.deepEqual(seen, before);
  });

  it('answers an empty page after the last card', async () => {
    const page = await list(`?starting_after=${cards.at(-1).id}`);
    assert.deepEqual(page, { object: 'list', data: [], has_more: false, next_cursor: null });
  });

  it('filters by the exact external_ref', async () => {
    const [wanted] = cards.filter((card) => card.external_ref === 'r-1');
    assert.deepEqual((await list('?external_ref=r-1')).data, [wanted]);
    assert.deepEqual((await list('?external_ref=R-1')).data, []);
    assert.deepEqual((await list('?external_ref=%25')).data, []);
  });

  it('finds an external_ref with any text that a card can have', async () => {
    const external_ref = `a b+c&d=e#f%25 'ü' 💳 \\ "`;
    const other = await fundedPartner(stack, 10_000);
    const { json } = await createCard(other, { amount: 100, external_ref });
    const found = await other.call('GET', `/cards?external_ref=${encodeURIComponent(external_ref)}`);
    assert.deepEqual(found.json.data, [json]);
  });

  for (const status of CardStatus.options) {
    it(`filters by status ${status} on every page`, async () => {
      const wanted = cards.filter((card) => card.status === status);
      const all = await list(`?status=${status}&limit=100`);
      assert.deepEqual(ids(all.data), ids(wanted));
      const rest =
        wanted.length === 0
          ? []
          : (await list(`?status=${status}&limit=100&starting_after=${wanted[0].id}`)).data;
      assert.deepEqual(ids(rest), ids(wanted.slice(1)));
    });
  }

  it('combines all of its filters', async () => {
    const frozen = cards[7];
    const query = `?status=frozen&external_ref=${frozen.external_ref}&limit=1`;
    assert.deepEqual((await list(query)).data, [frozen]);
    assert.deepEqual((await list(`${query}&starting_after=${cards[3].id}`)).data, [frozen]);
    assert.deepEqual((await list(`${query}&starting_after=${frozen.id}`)).data, []);
    assert.deepEqual((await list(query.replace('frozen', 'active'))).data, []);
  });

  it('accepts any card in starting_after, even one that the filters leave out', async () => {
    const page = await list(`?status=frozen&starting_after=${cards[5].id}`);
    assert.deepEqual(ids(page.data), [cards[7].id]);
  });

  it('shows nothing to another account or in the other mode', async () => {
    const empty = { object: 'list', data: [], has_more: false, next_cursor: null };
    assert.deepEqual((await (await stack.createPartner()).call('GET', '/cards')).json, empty);
    assert.deepEqual((await partner.call('GET', '/cards', { mode: 'live' })).json, empty);
  });

  it('answers 400 for a starting_after that is not a card of this account and mode', async () => {
    const cursor = ['starting_after'];
    const other = await stack.createPartner();
    const own = `/cards?starting_after=${cards[0].id}`;
    expectError(await other.call('GET', own), 'validation_failed', cursor);
    expectError(await partner.call('GET', own, { mode: 'live' }), 'validation_failed', cursor);
    for (const id of [`card_${'0'.repeat(26)}`, 'card_1', '', '%00', 'evt_00000000000000000000000000', "'"]) {
      expectError(await partner.call('GET', `/cards?starting_after=${id}`), 'validation_failed', cursor);
    }
    const filtered = `/cards?starting_after=card_${'0'.repeat(26)}&status=failed&external_ref=x`;
    expectError(await partner.call('GET', filtered), 'validation_failed', cursor);
  });
});
