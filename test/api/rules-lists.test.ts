import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { DECLARATIONS } from '../../api/routes.ts';
import type { IdPrefix } from '../../domain/ids.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { makeOneOfEach, unrestrictedPartner } from '../support/api/accounts.ts';
import { expectError } from '../support/api/answers.ts';
import { nameOf, pathTo, queryParametersOf } from '../support/api/declared-operations.ts';
import { post } from '../support/api/post.ts';
import { createCard } from '../support/cards.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner } from '../support/stack.ts';

interface Item {
  id: string;
  created: string;
}

interface Page {
  object: string;
  data: Item[];
  has_more: boolean;
  next_cursor: string | null;
}

/** How often everything is made before the tests: an account can have five webhook endpoints. */
const ROUNDS = 4;
const EVERYTHING = { limit: '100' };
const EMPTY: Page = { object: 'list', data: [], has_more: false, next_cursor: null };
const NO_LIMITS = ['0', '101', '-1', '1.0', '1.5', '1e1', 'x', '', ' 10', '٣', '9007199254740993'];
const NO_TIMES = ['2026-11-20', '1763700000', '', '2026-11-20T08:00:00'];
/** Where what is on a list is by itself. Keys are left out, as their last use changes meanwhile. */
const ITEM_PATHS: Record<string, string> = {
  card: '/cards',
  topup: '/topups',
  wdr: '/withdrawals',
  auth: '/authorizations',
  dep: '/funding/deposits',
  evt: '/events',
  op: '/operations',
  we: '/webhook-endpoints',
};
/** A filter of some lists has a statement of its own. */
const FILTERS: Record<string, Record<string, string>> = {
  '/cards': { status: 'active' },
  '/cards/:cardId/authorizations': { status: 'pending' },
  '/authorizations': { status: 'pending' },
  '/transactions': { type: 'purchase' },
  '/operations': { status: 'completed' },
  '/events': { type: 'card.issued' },
};
/** Whatever is asked here may add to the log of requests, which test/requests/request-log.test.ts reads. */
const LISTS = DECLARATIONS.filter(
  (declaration) =>
    declaration.path !== '/requests' && queryParametersOf(declaration).includes('starting_after'),
).flatMap((declaration) => {
  const filter = FILTERS[declaration.path];
  return [{ declaration, filter: {} }, ...(filter ? [{ declaration, filter }] : [])];
});

const idsOf = (items: Item[]) => items.map(({ id }) => id);
const prefixOf = (id: string) => id.slice(0, id.indexOf('_')) as IdPrefix;
const moved = (at: string, byMs: number) => new Date(Date.parse(at) + byMs).toISOString();

describe('a list', () => {
  let partner: TestPartner;
  let stranger: TestPartner;
  let cardId: string;
  let otherCardId: string;
  let strangersCardId: string;
  before(async () => {
    const stack = await sharedStack('api');
    partner = await unrestrictedPartner(stack);
    stranger = await unrestrictedPartner(stack);
    strangersCardId = (await makeOneOfEach(stranger)).cardId ?? '';
    cardId = (await createCard(partner, { amount: 10_000 })).json.id;
    for (let i = 0; i < ROUNDS; i++) otherCardId = await makeItems();
  });

  /** One for each list. @returns the id of the new card, which has nothing on its own lists */
  const makeItems = async (): Promise<string> => {
    await post(partner, `/cards/${cardId}/topups`, { amount: 100 });
    await post(partner, `/cards/${cardId}/withdrawals`, { amount: 10 });
    await post(partner, `/test/cards/${cardId}/authorizations`, { amount: 10 });
    await post(partner, `/test/cards/${cardId}/simulate-transaction`, { type: 'purchase', amount: 10 });
    await post(partner, '/test/deposits', { amount: 1_000 });
    await post(partner, '/webhook-endpoints', { url: `https://hooks.example.com/${randomUUID()}` });
    await post(partner, '/api-keys', { name: 'one', scopes: ['cards:read'] });
    await post(partner, '/workbench-sessions', {});
    return (await createCard(partner, { amount: 1_000 })).json.id;
  };

  for (const { declaration, filter } of LISTS) {
    const isOfCard = declaration.path.includes(':cardId');
    const ask = (query: Record<string, string>, by = partner, of = cardId, mode: 'test' | 'live' = 'test') =>
      by.call(
        'GET',
        `${pathTo(declaration, { cardId: of })}?${new URLSearchParams({ ...filter, ...query })}`,
        { mode },
      );
    const list = async (query: Record<string, string>, by = partner, of = cardId): Promise<Page> => {
      const { status, json, text } = await ask(query, by, of);
      assert.equal(status, 200, text);
      return json;
    };
    const ids = async (query: Record<string, string>) => idsOf((await list(query)).data);
    const all = async () => (await list(EVERYTHING)).data;

    describe(`at ${nameOf(declaration)} ${new URLSearchParams(filter)}`, () => {
      it('has the newest first, 20 by default, each as it is by itself', async () => {
        const { data, ...envelope } = await list(EVERYTHING);
        assert.ok(data.length >= ROUNDS && data.length < 100);
        assert.deepEqual(envelope, { object: 'list', has_more: false, next_cursor: null });
        assert.deepEqual(
          data,
          data.toSorted((a, b) => (a.id < b.id ? 1 : -1)),
        );
        const created = data.map((item) => item.created);
        assert.deepEqual(created, created.toSorted().reverse());
        assert.deepEqual(await ids({}), idsOf(data).slice(0, 20));
        const [first] = data;
        const path = ITEM_PATHS[prefixOf(first?.id ?? '')];
        if (path !== undefined)
          assert.deepEqual((await partner.call('GET', `${path}/${first?.id}`)).json, first);
      });

      it('has pages of any limit that follow each other', async () => {
        const everything = idsOf(await all());
        const n = everything.length;
        for (const limit of [1, 2, 3, n - 1, n, n + 1]) {
          const seen: string[] = [];
          for (let cursor: string | null = ''; cursor !== null; ) {
            const page: Page = await list({
              limit: String(limit),
              ...(cursor !== '' && { starting_after: cursor }),
            });
            seen.push(...idsOf(page.data));
            assert.ok(page.data.length > 0 && page.data.length <= limit);
            assert.equal(page.has_more, seen.length < n);
            assert.equal(page.next_cursor, page.has_more ? page.data.at(-1)?.id : null);
            cursor = page.next_cursor;
          }
          assert.deepEqual(seen, everything, `in pages of ${limit}`);
        }
      });

      it('is empty after its last item', async () => {
        const last = (await all()).at(-1)?.id ?? '';
        assert.deepEqual(await list({ starting_after: last }), EMPTY);
      });

      it('shows nothing of another account, card or mode, and starts after nothing of theirs', async () => {
        const mine = await all();
        const known = new Set(idsOf(mine));
        const cursor = { starting_after: mine[0]?.id ?? '' };
        const theirs = await list(EVERYTHING, stranger, strangersCardId);
        assert.deepEqual(
          idsOf(theirs.data).filter((id) => known.has(id)),
          [],
        );
        expectError(await ask(cursor, stranger, strangersCardId), 'validation_failed', ['starting_after']);
        if (isOfCard) {
          expectError(await ask({}, stranger), 'card_not_found');
          expectError(await ask(cursor, stranger), 'card_not_found');
          expectError(await ask(cursor, partner, cardId, 'live'), 'card_not_found');
          assert.deepEqual(await list({}, partner, otherCardId), EMPTY);
          expectError(await ask(cursor, partner, otherCardId), 'validation_failed', ['starting_after']);
        } else {
          const live = await ask(EVERYTHING, partner, cardId, 'live');
          assert.deepEqual(
            idsOf(live.json.data).filter((id) => known.has(id)),
            [],
          );
          expectError(await ask(cursor, partner, cardId, 'live'), 'validation_failed', ['starting_after']);
        }
      });

      it('answers 400 for a cursor that is no id of its items', async () => {
        const prefix = prefixOf((await all())[0]?.id ?? '');
        const other = newId(prefix === 'evt' ? 'card' : 'evt');
        for (const starting_after of [newId(prefix), other, 'x', `${prefix}_1`, '', '\0', "'"])
          expectError(await ask({ starting_after }), 'validation_failed', ['starting_after']);
      });

      it('answers 400 for a limit that is not an integer from 1 to 100, written in digits', async () => {
        for (const limit of NO_LIMITS) expectError(await ask({ limit }), 'validation_failed', ['limit']);
        expectError(await ask({ 'limit[]': '1' }), 'validation_failed', ['limit[]']);
      });

      it('answers 400 for each filter that has no valid value', async () => {
        for (const name of queryParametersOf(declaration))
          expectError(await ask({ [name]: '\0' }), 'validation_failed', [name]);
      });

      it('answers 400 for created_gte and created_lte unless they are timestamps with a time zone', async () => {
        for (const time of NO_TIMES)
          expectError(await ask({ created_gte: time, created_lte: time }), 'validation_failed', [
            'created_gte',
            'created_lte',
          ]);
      });

      it('is bounded by created_gte and created_lte to the millisecond, both ends included', async () => {
        const data = await all();
        const newest = data[1]?.created ?? '';
        const oldest = data.at(-2)?.created ?? '';
        const between = (from: string, until: string) =>
          idsOf(data.filter(({ created }) => created >= from && created <= until));
        for (const [from, until] of [
          [oldest, undefined],
          [undefined, newest],
          [oldest, newest],
          [moved(oldest, 1), moved(newest, -1)],
        ])
          assert.deepEqual(
            await ids({
              ...EVERYTHING,
              ...(from && { created_gte: from }),
              ...(until && { created_lte: until }),
            }),
            between(from ?? '', until ?? '~'),
          );
        assert.deepEqual(await ids({ created_gte: moved(newest, 1), created_lte: newest }), []);
        for (const none of [
          { created_gte: '9999-12-31T23:59:59.999Z' },
          { created_gte: '9999-12-31T23:59:59-12:00' },
          { created_lte: '0000-01-01T00:00:00.000Z' },
          { created_lte: '0000-01-01T00:00:00+12:00' },
        ] as Record<string, string>[])
          assert.deepEqual(await ids(none), []);
        const anyTime = {
          created_gte: '0000-01-01T00:00:00+12:00',
          created_lte: '9999-12-31T23:59:59-12:00',
        };
        assert.deepEqual(await ids({ ...EVERYTHING, ...anyTime }), idsOf(data));
      });

      it('has pages of a range of time that follow each other, from inside and from outside of it', async () => {
        const data = await all();
        const range = { created_gte: data.at(-2)?.created ?? '', created_lte: data[1]?.created ?? '' };
        const wanted = await ids({ ...EVERYTHING, ...range });
        const found: string[] = [];
        for (let cursor: string | null = data[0]?.id ?? null; cursor !== null; ) {
          const page = await list({ limit: '2', ...range, starting_after: cursor });
          found.push(...idsOf(page.data));
          cursor = page.next_cursor;
        }
        assert.deepEqual(
          found,
          wanted.filter((id) => id !== data[0]?.id),
        );
        const { created_gte } = range;
        assert.deepEqual(await ids({ created_gte, starting_after: data.at(-1)?.id ?? '' }), []);
      });
    });
  }

  it('goes on where it was when new items have come meanwhile', async () => {
    const reading = [];
    for (const { declaration, filter } of LISTS) {
      const path = pathTo(declaration, { cardId });
      const page = async (query: string): Promise<Page> =>
        (await partner.call('GET', `${path}?${new URLSearchParams(filter)}&${query}`)).json;
      const [everything, first] = [await page('limit=100'), await page('limit=2')];
      reading.push({ path, page, everything, first });
    }
    await makeItems();
    for (const { path, page, everything, first } of reading) {
      const rest = await page(`limit=100&starting_after=${first.next_cursor}`);
      assert.deepEqual(idsOf([...first.data, ...rest.data]), idsOf(everything.data), path);
    }
  });
});
