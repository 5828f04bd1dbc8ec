import assert from 'node:assert/strict';
import { AuthorizationStatus } from '../../domain/authorization.ts';
import { CardStatus } from '../../domain/card-status.ts';
import { DeliveryStatus } from '../../domain/event.ts';
import { TransactionType } from '../../domain/transaction.ts';
import { expectError } from '../support/api/answers.ts';
import { type AuthorizedCard, authorizedCard, onAuthorization } from '../support/authorizations.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner, setCardStatus } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner } from '../support/stack.ts';
import { seedEvents } from '../support/webhooks/events.ts';

// biome-ignore lint/suspicious/noExplicitAny: an item of any list, as the API gives it.
type Item = any;
type Filter = Record<string, string>;

const ODD_REF = `a b+c&d=e#f%25 'ü' 💳 \\ "`;

/** Pages, cursors and times of every list are in test/api/rules-lists.test.ts. */
describe('the filters of', () => {
  let partner: TestPartner;
  let cards: AuthorizedCard[];
  let theirs: AuthorizedCard;
  before(async () => {
    const stack = await sharedStack('api');
    partner = await fundedPartner(stack);
    theirs = await authorizedCard(await fundedPartner(stack));
    await theirs.simulate({ type: 'purchase', amount: 10 });
    await seedEvents(
      stack,
      partner,
      DeliveryStatus.options.flatMap((status, n) =>
        (['card.issued', 'topup.failed'] as const).map((type, m) => ({
          status,
          type,
          ageMs: 1_000 * (2 * n + m + 1),
        })),
      ),
    );
    cards = [await authorizedCard(partner), await authorizedCard(partner)];
    for (const card of cards) {
      for (const type of ['purchase', 'decline', 'refund', 'purchase'])
        await card.simulate({ type, amount: 10 });
      for (const amount of [10, 20, 1_000_000]) {
        const { json } = await card.authorize(amount);
        if (amount === 20) await onAuthorization(partner, json.id).expire();
      }
    }
    for (const [external_ref, status] of [
      [ODD_REF, 'active'],
      ['r-1', 'frozen'],
      ['r-2', 'frozen'],
      ['r-3', 'blocked'],
    ] as const) {
      const { json } = await createCard(partner, { amount: 100, external_ref });
      await setCardStatus(stack, partner.id, status, { cardId: json.id });
    }
  });

  const list = async (path: string, query: Filter): Promise<Item[]> => {
    const { status, json, text } = await partner.call('GET', `${path}?${new URLSearchParams(query)}`);
    assert.equal(status, 200, text);
    return json.data;
  };
  const ids = (items: Item[]) => items.map(({ id }) => id);
  const cardIds = () => [...cards.map(({ id }) => id), theirs.id, `card_${'0'.repeat(26)}`];

  for (const { path, choices, valuesOf } of [
    {
      path: '/cards',
      choices: () => ({ status: CardStatus.options, external_ref: ['r-1', ODD_REF, 'R-1', '%'] }),
      valuesOf: ({ status, external_ref }: Item) => ({ status, external_ref }),
    },
    {
      path: '/transactions',
      choices: () => ({ type: TransactionType.options, card_id: cardIds() }),
      valuesOf: ({ type, card_id }: Item) => ({ type, card_id }),
    },
    {
      path: '/authorizations',
      choices: () => ({ status: AuthorizationStatus.options, card_id: cardIds() }),
      valuesOf: ({ status, card_id }: Item) => ({ status, card_id }),
    },
    {
      path: '/events',
      choices: () => ({
        type: ['card.issued', 'card.authorization.created', 'deposit.confirmed'],
        delivery_status: DeliveryStatus.options,
        card_id: cardIds(),
      }),
      valuesOf: ({ type, delivery, data }: Item) => ({
        ...{ type, delivery_status: delivery.status, card_id: data.card?.id },
      }),
    },
  ]) {
    it(`GET ${path} leave what has all of their values, on every page and after any cursor`, async () => {
      const everything = await list(path, { limit: '100' });
      let filters: Filter[] = [{}];
      for (const [name, values] of Object.entries(choices()))
        filters = filters.flatMap((one) => [one, ...values.map((value) => ({ ...one, [name]: value }))]);
      let met = 0;
      for (const filter of filters) {
        const isWanted = (item: Item) => {
          const values: Filter = valuesOf(item);
          return Object.entries(filter).every(([name, value]) => values[name] === value);
        };
        const wanted = ids(everything.filter(isWanted));
        assert.deepEqual(ids(await list(path, { ...filter, limit: '100' })), wanted, JSON.stringify(filter));
        if (wanted.length === 0) continue;
        met += 1;
        const next = await list(path, { ...filter, limit: '1', starting_after: wanted[0] });
        assert.deepEqual(ids(next), wanted.slice(1, 2));
        const rest = await list(path, { ...filter, limit: '100', starting_after: everything[2].id });
        assert.deepEqual(ids(rest), ids(everything.slice(3).filter(isWanted)));
      }
      assert.ok(met > 5, `${met} of ${filters.length} were met`);
    });
  }

  it('GET /transactions leave each transaction as the list of its card shows it', async () => {
    const [mine] = cards;
    assert.deepEqual(await list('/transactions', { card_id: mine?.id ?? '' }), await mine?.transactions());
  });

  it('all lists are refused with 400 that names what is wrong, and what may be meant', async () => {
    for (const [query, paths, message = /./] of [
      ['/cards?status=active,frozen', ['status']],
      ['/cards?external_ref=a%0Ab', ['external_ref']],
      [`/cards?external_ref=${'x'.repeat(256)}`, ['external_ref']],
      ['/cards?external_ref=%ED%A0%80', ['query']],
      ['/cards?limit=1&limit=2&status=x&status=y&foo=1&foo=2', ['limit', 'status', 'foo']],
      ['/cards?__proto__=1&constructor=2&limit=0', ['__proto__', 'constructor', 'limit']],
      ['/transactions?card_id=x&type=PURCHASE', ['card_id', 'type']],
      ['/events?type=card_issued', ['type'], /did you mean card\.issued\?$/],
      ['/events?type=topup.suceeded', ['type'], /did you mean topup\.succeeded\?$/],
      ['/events?type=lost', ['type'], /^type must be one of card\.issued, /],
    ] as [string, string[], RegExp?][]) {
      const answer = await partner.call('GET', query);
      expectError(answer, 'validation_failed', paths);
      assert.match(answer.json.error.message, message);
    }
  });
});
