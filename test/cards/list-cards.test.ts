import assert from 'node:assert/strict';
import { CardStatus } from '../../domain/card-status.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner, setCardStatus } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('the filters of GET /cards', () => {
  let stack: TestStack;
  let partner: TestPartner;
  /** All of the account's test cards, newest first. */
  // biome-ignore lint/suspicious/noExplicitAny: cards as the API gives them.
  let cards: any[];
  before(async () => {
    stack = await sharedStack('api');
    partner = await fundedPartner(stack, 1_000_000);
    const made = [];
    for (let i = 0; i < 12; i++)
      made.push(await createCard(partner, { amount: 100, external_ref: `r-${i}` }));
    assert.ok(made.every((answer) => answer.status === 201));
    cards = made.map((answer) => answer.json).sort((a, b) => (a.id < b.id ? 1 : -1));
    for (const [index, status] of [
      [3, 'frozen'],
      [7, 'frozen'],
      [10, 'blocked'],
    ] as const) {
      await setCardStatus(stack, partner.id, status, { cardId: cards[index].id });
      cards[index] = { ...cards[index], status };
    }
  });

  const list = async (query = '') => {
    const answer = await partner.call('GET', `/cards${query}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  const ids = (some: { id: string }[]) => some.map((card) => card.id);

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

  const INVALID: Record<string, string[]> = {
    'status=': ['status'],
    'status=ACTIVE': ['status'],
    'status=active,frozen': ['status'],
    'external_ref=': ['external_ref'],
    'external_ref=a%0Ab': ['external_ref'],
    [`external_ref=${'x'.repeat(256)}`]: ['external_ref'],
    'external_ref=%ED%A0%80': ['query'],
    'external_ref=%': ['query'],
    'limit=1&limit=2&status=x&status=y&foo=1&foo=2': ['limit', 'status', 'foo'],
    'page=2&offset=1&ending_before=x': ['page', 'offset', 'ending_before'],
    '__proto__=1&constructor=2&limit=0': ['__proto__', 'constructor', 'limit'],
    '=1': [''],
  };
  it('answers 400 for what no filter can be, and names all of it', async () => {
    for (const [query, paths] of Object.entries(INVALID))
      expectError(await partner.call('GET', `/cards?${query}`), 'validation_failed', paths);
  });
});
