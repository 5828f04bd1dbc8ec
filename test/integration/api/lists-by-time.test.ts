import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expectError } from '../../support/api/answers.ts';
import { type AuthorizedCard, authorizedCard } from '../../support/authorizations.ts';
import { createCard } from '../../support/cards.ts';
import { seedDeposit } from '../../support/deposits/seed-deposits.ts';
import { fundedPartner } from '../../support/money.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../../support/stack.ts';
import { withdraw } from '../../support/withdrawals.ts';

const EACH = 6;

interface Item {
  id: string;
  created: string;
}

describe('created_gte and created_lte', function () {
  this.timeout(120_000);
  let stack: TestStack;
  let partner: TestPartner;
  let card: AuthorizedCard;
  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 1_000_000);
    card = await authorizedCard(partner, 100_000);
    const ok = ({ status, text }: Answer) => assert.equal(status, 201, text);
    for (let i = 0; i < EACH; i++) {
      await sleep(3);
      ok(await createCard(partner, { amount: 1_000 }));
      const body = { amount: 100 };
      ok(await partner.call('POST', `/cards/${card.id}/topups`, { body, idempotencyKey: randomUUID() }));
      ok(await withdraw({ partner, mode: 'test', cardId: card.id }, 100));
      ok(await card.authorize(100));
      ok(await card.simulate({ type: 'purchase', amount: 100 }));
      await seedDeposit(stack, partner.id, {});
    }
  });

  const LISTS: [path: string, mode: 'test' | 'live'][] = [
    ['/cards', 'test'],
    ['/cards?status=active', 'test'],
    ['/cards/{cardId}/topups', 'test'],
    ['/cards/{cardId}/withdrawals', 'test'],
    ['/cards/{cardId}/authorizations', 'test'],
    ['/cards/{cardId}/authorizations?status=pending', 'test'],
    ['/cards/{cardId}/transactions', 'test'],
    ['/transactions', 'test'],
    ['/transactions?type=purchase', 'test'],
    ['/balance/transactions', 'test'],
    ['/events', 'test'],
    ['/funding/deposits', 'live'],
  ];
  for (const [path, mode] of LISTS) {
    const list = async (query: Record<string, string>) => {
      const [at = '', filters] = path.replace('{cardId}', card.id).split('?');
      const asked = new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(filters)), ...query });
      const { status, json, text } = await partner.call('GET', `${at}?${asked}`, { mode });
      assert.equal(status, 200, text);
      return json as { data: Item[]; has_more: boolean; next_cursor: string | null };
    };
    const ids = async (query: Record<string, string>) => (await list(query)).data.map(({ id }) => id);
    const moved = (at: string, byMs: number) => new Date(Date.parse(at) + byMs).toISOString();

    it(`bound GET ${path} to the millisecond, and include both ends`, async () => {
      const { data } = await list({ limit: '100' });
      const newest = data[1]?.created ?? '';
      const oldest = data.at(-2)?.created ?? '';
      assert.ok(data.length >= EACH && oldest < newest, path);
      const between = (from: string, until: string) =>
        data.filter(({ created }) => created >= from && created <= until).map(({ id }) => id);
      const everything = { limit: '100' };
      assert.deepEqual(await ids({ ...everything, created_gte: oldest }), between(oldest, '~'));
      assert.deepEqual(await ids({ ...everything, created_lte: newest }), between('', newest));
      assert.deepEqual(
        await ids({ ...everything, created_gte: oldest, created_lte: newest }),
        between(oldest, newest),
      );
      assert.deepEqual(
        await ids({ ...everything, created_gte: moved(oldest, 1), created_lte: moved(newest, -1) }),
        between(moved(oldest, 1), moved(newest, -1)),
      );
      assert.deepEqual(await ids({ created_gte: newest, created_lte: oldest }), []);
      assert.deepEqual(await ids({ created_gte: '9999-12-31T23:59:59.999Z' }), []);
      assert.deepEqual(await ids({ created_gte: '9999-12-31T23:59:59-12:00' }), []);
      assert.deepEqual(await ids({ created_lte: '0000-01-01T00:00:00.000Z' }), []);
      assert.deepEqual(await ids({ created_lte: '0000-01-01T00:00:00+12:00' }), []);
      const anyTime = {
        created_gte: '0000-01-01T00:00:00+12:00',
        created_lte: '9999-12-31T23:59:59-12:00',
      };
      assert.deepEqual(await ids({ ...everything, ...anyTime }), between('', '~'));
    });

    it(`have the pages of GET ${path} follow each other, from inside and from outside of the range`, async () => {
      const { data } = await list({ limit: '100' });
      const [created_gte, created_lte] = [data.at(-2)?.created ?? '', data[1]?.created ?? ''];
      const wanted = await ids({ limit: '100', created_gte, created_lte });
      const found: string[] = [];
      for (let cursor: string | null = data[0]?.id ?? null; cursor !== null; ) {
        const page = await list({ limit: '2', created_gte, created_lte, starting_after: cursor });
        found.push(...page.data.map(({ id }) => id));
        cursor = page.next_cursor;
      }
      assert.deepEqual(
        found,
        wanted.filter((id) => id !== data[0]?.id),
      );
      assert.deepEqual(await ids({ created_gte, starting_after: data.at(-1)?.id ?? '' }), []);
    });

    it(`have GET ${path} answer 400 unless they are timestamps with a time zone`, async () => {
      const [at] = path.replace('{cardId}', card.id).split('?');
      const answer = await partner.call('GET', `${at}?created_gte=2026-11-20&created_lte=1763700000`, {
        mode,
      });
      expectError(answer, 'validation_failed', ['created_gte', 'created_lte']);
    });
  }
});

describe('GET /transactions', function () {
  this.timeout(60_000);
  let partner: TestPartner;
  let other: TestPartner;
  let cards: AuthorizedCard[];
  let made: { id: string; type: string; card_id: string }[];
  before(async () => {
    const stack = await sharedStack();
    partner = await fundedPartner(stack, 1_000_000);
    other = await fundedPartner(stack, 1_000_000);
    cards = [await authorizedCard(partner), await authorizedCard(partner)];
    made = [];
    for (const type of ['purchase', 'decline', 'refund', 'purchase', 'refund']) {
      for (const card of cards) {
        const { json } = await card.simulate({ type, amount: 10 });
        made.unshift({ id: json.id, type, card_id: card.id });
      }
    }
    await (await authorizedCard(other)).simulate({ type: 'purchase', amount: 10 });
  });

  const list = async (query = '') => {
    const { json, status, text } = await partner.call('GET', `/transactions?${query}`);
    assert.equal(status, 200, text);
    return json.data.map(({ id, type, card_id }: (typeof made)[number]) => ({ id, type, card_id }));
  };

  it('lists the transactions of all cards of the account and mode, newest first', async () => {
    assert.deepEqual(await list(), made);
    const live = await partner.call('GET', '/transactions', { mode: 'live' });
    assert.deepEqual(live.json.data, []);
  });

  it('shows each as the list of its card does', async () => {
    const [mine] = cards;
    const ofCard = await mine?.transactions();
    const { json } = await partner.call('GET', `/transactions?card_id=${mine?.id}`);
    assert.deepEqual(json.data, ofCard);
  });

  it('filters by card and by type, alone and together, and by page', async () => {
    for (const card of [undefined, ...cards]) {
      for (const type of [undefined, 'purchase', 'decline', 'refund']) {
        const query = new URLSearchParams({ ...(card && { card_id: card.id }), ...(type && { type }) });
        const wanted = made.filter(
          (one) =>
            (card === undefined || one.card_id === card.id) && (type === undefined || one.type === type),
        );
        assert.deepEqual(await list(String(query)), wanted);
        query.set('starting_after', wanted[0]?.id ?? '');
        query.set('limit', '1');
        assert.deepEqual(await list(String(query)), wanted.slice(1, 2));
      }
    }
  });

  it("is empty for a card that doesn't exist, or is another account's", async () => {
    const [theirs] = (await other.call('GET', '/cards')).json.data;
    assert.deepEqual(await list(`card_id=${theirs.id}`), []);
    assert.deepEqual(await list(`card_id=${theirs.id}&type=purchase`), []);
    assert.deepEqual(await list(`card_id=card_${'0'.repeat(26)}`), []);
  });

  it('answers 400 for other filters, and for a cursor that is not a transaction of the account', async () => {
    const [theirs] = (await other.call('GET', '/transactions')).json.data;
    for (const [query, paths] of [
      ['card_id=x&type=PURCHASE&limit=0', ['card_id', 'type', 'limit']],
      ['status=settled', ['status']],
      [`starting_after=${theirs.id}`, ['starting_after']],
      [`starting_after=${cards[0]?.id}`, ['starting_after']],
    ] as const) {
      expectError(await partner.call('GET', `/transactions?${query}`), 'validation_failed', paths);
    }
  });
});
