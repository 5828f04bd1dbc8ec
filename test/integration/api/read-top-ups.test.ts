import assert from 'node:assert/strict';
import { newId } from '../../../crypto/new-id.ts';
import { expectError } from '../../support/api/answers.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestStack } from '../../support/stack.ts';
import { type Cardholder, cardholder, listTopUps, topUp } from '../../support/top-ups.ts';

/** What no id of a top-up can be, as a part of a path. */
const NO_IDS = [
  ...[
    'x',
    'topup_',
    'topup_1',
    `TOPUP_${'0'.repeat(26)}`,
    `card_${'0'.repeat(26)}`,
    `topup_${'0'.repeat(25)}i`,
  ],
  ...[
    `topup_${'0'.repeat(27)}`,
    `topup_${'0'.repeat(26)}%00`,
    "topup_'%20OR%20'1'='1",
    '%F0%9F%92%A5',
    '%E0%A4%A',
  ],
];

describe('the API', () => {
  let stack: TestStack;
  let holder: Cardholder;
  /** All of the card's, newest first. */
  // biome-ignore lint/suspicious/noExplicitAny: top-ups as the API gives them.
  let topUps: any[];
  before(async () => {
    stack = await sharedStack();
    holder = await cardholder(stack, 'test', 1_000_000);
    const made = [];
    for (let i = 0; i < 25; i++) made.push((await topUp(holder, 100 + i)).json);
    topUps = made.sort((a, b) => (a.id < b.id ? 1 : -1));
  });

  const get = (path: string, of: Cardholder = holder) => of.partner.call('GET', path, { mode: of.mode });

  describe('at GET /topups/{topupId}', () => {
    it('returns each top-up as its creation did', async () => {
      for (const one of [topUps[0], topUps[24]]) {
        const { status, json } = await get(`/topups/${one.id}`);
        assert.deepEqual([status, json], [200, one]);
      }
    });

    it('answers 404 to another account or in the other mode', async () => {
      const path = `/topups/${topUps[0].id}`;
      const other = await cardholder(stack, 'test', 0);
      expectError(await get(path, other), 'topup_not_found');
      expectError(await get(path, { ...holder, mode: 'live' }), 'topup_not_found');
    });

    it('answers 404 for unknown ids, of the right form or not', async () => {
      for (const id of [newId('topup'), holder.cardId, ...NO_IDS]) {
        expectError(await get(`/topups/${id}`), 'topup_not_found');
      }
    });

    it('refuses query parameters and other methods', async () => {
      expectError(await get(`/topups/${topUps[0].id}?expand=card`), 'validation_failed', ['expand']);
      const deleted = await holder.partner.call('DELETE', `/topups/${topUps[0].id}`);
      expectError(deleted, 'method_not_allowed');
    });
  });

  describe('at GET /cards/{cardId}/topups', () => {
    it('lists the newest 20 by default in the list envelope', async () => {
      assert.deepEqual(await listTopUps(holder), {
        object: 'list',
        data: topUps.slice(0, 20),
        has_more: true,
        next_cursor: topUps[19].id,
      });
    });

    for (const limit of [1, 7, 24, 25, 26, 100]) {
      it(`lists all top-ups in pages of ${limit}`, async () => {
        const seen = [];
        for (let cursor: string | null = ''; cursor !== null; ) {
          const page: { data: unknown[]; has_more: boolean; next_cursor: string | null } = await listTopUps(
            holder,
            `?limit=${limit}${cursor === '' ? '' : `&starting_after=${cursor}`}`,
          );
          assert.ok(page.data.length <= limit && page.data.length > 0);
          assert.equal(page.has_more, page.next_cursor !== null);
          seen.push(...page.data);
          cursor = page.next_cursor;
        }
        assert.deepEqual(seen, topUps);
      });
    }

    it('has pages that stay the same while new top-ups arrive', async () => {
      const other = await cardholder(stack, 'test', 100_000);
      for (let i = 0; i < 4; i++) await topUp(other, 100);
      const first = await listTopUps(other, '?limit=2');
      await topUp(other, 100);
      const second = await listTopUps(other, `?limit=2&starting_after=${first.next_cursor}`);
      const [, ...before] = (await listTopUps(other)).data;
      // Their balance is of the time they ended, so nothing of them has changed.
      assert.deepEqual([...first.data, ...second.data], before);
    });

    it('answers an empty list for a card without top-ups, and after the last one', async () => {
      const empty = { object: 'list', data: [], has_more: false, next_cursor: null };
      assert.deepEqual(await listTopUps(await cardholder(stack, 'test', 0)), empty);
      assert.deepEqual(await listTopUps(holder, `?starting_after=${topUps[24].id}`), empty);
    });

    it("shows no top-ups of the account's other cards", async () => {
      const { json } = await holder.partner.call('POST', '/cards', {
        body: { amount: 100, external_ref: 'another' },
        idempotencyKey: 'another',
      });
      const mine = await topUp({ ...holder, cardId: json.id }, 100);
      assert.deepEqual((await listTopUps({ ...holder, cardId: json.id })).data, [mine.json]);
      assert.equal((await listTopUps(holder, '?limit=100')).data.length, 25);
      const foreign = `/cards/${holder.cardId}/topups?starting_after=${mine.json.id}`;
      expectError(await get(foreign), 'validation_failed', ['starting_after']);
    });

    it('answers 404 for a card of another account or mode, and for an unknown one', async () => {
      const other = await cardholder(stack, 'test', 0);
      const path = `/cards/${holder.cardId}/topups`;
      expectError(await get(path, other), 'card_not_found');
      expectError(await get(path, { ...holder, mode: 'live' }), 'card_not_found');
      expectError(await get(`${path}?starting_after=${topUps[0].id}`, other), 'card_not_found');
      for (const id of [newId('card'), ...NO_IDS])
        expectError(await get(`/cards/${id}/topups`), 'card_not_found');
    });

    it('answers 400 for an invalid limit or starting_after', async () => {
      const path = `/cards/${holder.cardId}/topups`;
      for (const limit of ['0', '101', '-1', '1.5', 'x', '', '1e1', '9999999999999999999']) {
        expectError(await get(`${path}?limit=${limit}`), 'validation_failed', ['limit']);
      }
      for (const id of [newId('topup'), ...NO_IDS.slice(0, -1)]) {
        expectError(await get(`${path}?starting_after=${id}`), 'validation_failed', ['starting_after']);
      }
      expectError(await get(`${path}?limit=1&limit=1`), 'validation_failed', ['limit']);
      expectError(await get(`${path}?status=failed`), 'validation_failed', ['status']);
    });
  });
});
