import assert from 'node:assert/strict';
import { sql } from 'kysely';
import type pg from 'pg';
import { readBalanceTransactionPage } from '../../../accounts/routes.ts';
import { readCardPage } from '../../../cards/routes.ts';
import { readTransferPage } from '../../../cards/transfers/routes.ts';
import { readDepositPage } from '../../../deposits/routes.ts';
import { AuthorizationStatus } from '../../../domain/authorization.ts';
import { CardStatus } from '../../../domain/card-status.ts';
import { DeliveryStatus } from '../../../domain/event.ts';
import type { IdPrefix } from '../../../domain/ids.ts';
import { completeControls, LimitInterval } from '../../../domain/spending-controls.ts';
import { TransactionType } from '../../../domain/transaction.ts';
import { readOverview } from '../../../exports/overview-routes.ts';
import { readAccountMonth } from '../../../ledger/account-month.ts';
import { readPrepaidEntriesOfCard } from '../../../ledger/balances.ts';
import { readAllAuthorizations, readAuthorizationPage } from '../../../payments/authorizations-routes.ts';
import { readSpendingLimits } from '../../../payments/spending-limits-routes.ts';
import { lockTerms } from '../../../payments/terms.ts';
import { toTerms } from '../../../payments/terms-left.ts';
import { readTransactions } from '../../../payments/transaction-operator-reads.ts';
import { readCardTransactionPage, readTransactionPage } from '../../../payments/transactions-routes.ts';
import { lowestId } from '../../../platform/crypto/new-id.ts';
import type { Orm } from '../../../platform/db/orm.ts';
import { readStatement, type Transactor } from '../../../platform/db/sql.ts';
import { readOperationPage } from '../../../requests/routes.ts';
import { OperationStatus } from '../../../requests/rules.ts';
import { readEventPage } from '../../../webhooks/events-routes.ts';
import { readWebhooks } from '../../../webhooks/reads.ts';
import { connectTo, createTestDatabase, ownerUrlOf } from '../postgres.ts';
import { explainReads } from './explained-reads.ts';
import { OTHER, OWNER, type Size, STEP_MS, seedLists } from './list-plans-seed.ts';

const LIMIT = 20;

const spentBetween = readStatement(
  (_, { cardId, from, until }: { cardId: string; from: Date; until: Date }) =>
    sql<{ cents: string }>`SELECT spent_between(${cardId}, NULL, ${from}, ${until}) AS cents`,
);

/**
 * Every list, with each of its filters and all of them together, on an account with this many rows of it: the rows that
 * PostgreSQL reads for a page are a small multiple of the page. What is common and what is rare are on opposite ends, so
 * that a walk from the newest meets a rare one last, and many combinations have no row at all.
 */
export function describeListPlans({ rows, partitions }: Size): void {
  describe(`the number of rows that a list reads of ${rows} in ${partitions} partitions`, () => {
    let owner: pg.Client;
    let orm: Orm;
    let readsLittle: ReturnType<typeof explainReads>['readsLittle'];
    /** All rows are of one day, since a daily limit starts anew at midnight. */
    const newestMs = Math.max(Date.now() - 60_000, new Date().setUTCHours(0, 0, 0, 0) + (rows + 1) * STEP_MS);
    const idOf = (prefix: IdPrefix, n: number) =>
      `${lowestId(prefix, new Date(newestMs - n * STEP_MS)).slice(0, -8)}${String(n).padStart(8, '0')}`;
    const at = (n: number) => new Date(newestMs - n * STEP_MS);
    const half = rows / 2;
    const threeQuarters = (rows * 3) / 4;
    const range: { created_gte?: Date; created_lte?: Date }[] = [
      {},
      { created_gte: at(threeQuarters) },
      { created_lte: at(threeQuarters) },
      { created_gte: at(threeQuarters + 100), created_lte: at(threeQuarters) },
      { created_gte: at(rows - 1), created_lte: at(100) },
    ];
    const cursors = (prefix: IdPrefix) => [undefined, idOf(prefix, 1_000)];
    /** Any card, one with nearly everything, one with the rest, and one with nothing. */
    const cardId = [undefined, idOf('card', 0), idOf('card', 1), idOf('card', 2)];
    // biome-ignore lint/suspicious/noExplicitAny: each has the filters of its own list.
    const FILTERED: { list: string; filters: object[]; read: (page: any) => Promise<object[]> }[] = [
      {
        list: 'GET /events',
        filters: [
          ...combined({
            type: [undefined, 'card.issued', 'card.transaction.created', 'deposit.confirmed', 'ping'],
            delivery_status: [undefined, ...DeliveryStatus.options],
            range,
            starting_after: cursors('evt'),
          }),
          ...combined({ card_id: cardId, range, starting_after: cursors('evt') }),
          ...combined({
            card_id: cardId.slice(1),
            type: ['card.issued', 'topup.succeeded', 'deposit.confirmed', 'ping'],
            range,
            starting_after: cursors('evt'),
          }),
        ],
        read: (page) => readEventPage(orm, OWNER, page),
      },
      {
        list: 'GET /cards',
        filters: combined({
          external_ref: [undefined, 'ref-7', 'often-failed', 'unknown'],
          ...{ status: [undefined, ...CardStatus.options], starting_after: cursors('card') },
        }),
        read: (page) => readCardPage(orm, OWNER, page),
      },
      {
        list: 'GET /transactions',
        filters: combined({
          type: [undefined, ...TransactionType.options],
          ...{ card_id: cardId, range, starting_after: cursors('txn') },
        }),
        read: (page) => readTransactionPage(orm, OWNER, page),
      },
      {
        list: 'GET /authorizations',
        filters: combined({
          status: [undefined, ...AuthorizationStatus.options],
          ...{ card_id: cardId, range, starting_after: cursors('auth') },
        }),
        read: (page) => readAllAuthorizations(orm, OWNER, page),
      },
      {
        list: 'GET /operations',
        filters: combined({
          status: [undefined, ...OperationStatus.options],
          ...{ idempotency_key: [undefined, 'key 7', 'unknown'], range, starting_after: cursors('op') },
        }),
        read: (page) => readOperationPage(orm, OWNER, page),
      },
    ];

    before(async () => {
      owner = await connectTo(ownerUrlOf(await createTestDatabase()));
      await seedLists(owner, { rows, partitions }, { at, idOf });
      ({ orm, readsLittle } = explainReads(owner, LIMIT));
    });
    after(() => owner.end());

    for (const mode of ['force_generic_plan', 'force_custom_plan']) {
      describe(`with plan_cache_mode ${mode}`, () => {
        before(() => owner.query(`SET plan_cache_mode = ${mode}`));

        for (const { list, filters, read } of FILTERED) {
          it(`is a small multiple of the page for ${list}, whatever the filters`, async () => {
            for (const filter of filters) {
              const page = { limit: LIMIT, ...filter };
              await readsLittle(page, () => read(page), { wantsRows: false });
            }
          });
        }

        it('is a small multiple of the page where there are enough for a page, and a few where there are few', async () => {
          const [busy, quiet] = [idOf('card', 0), idOf('card', 1)];
          const limit = LIMIT;
          const topUps = (cardId: string, startingAfter?: string) =>
            readTransferPage(orm, OWNER, 'topup', { cardId, limit, starting_after: startingAfter });
          const withdrawals = (cardId: string, startingAfter?: string) =>
            readTransferPage(orm, OWNER, 'withdrawal', { cardId, limit, starting_after: startingAfter });
          const transactions = (cardId: string, startingAfter?: string) =>
            readCardTransactionPage(orm, OWNER, cardId, { limit, starting_after: startingAfter });
          for (const read of [
            () => readEventPage(orm, OTHER, { limit }),
            () => readEventPage(orm, OTHER, { limit, type: 'topup.succeeded' }),
            () => readEventPage(orm, OTHER, { limit, delivery_status: 'delivered' }),
            () => readEventPage(orm, OTHER, { limit, type: 'topup.succeeded', delivery_status: 'delivered' }),
            () => readCardPage(orm, OTHER, { limit }),
            () => readBalanceTransactionPage(orm, OWNER, { limit }),
            ...[undefined, ...OperationStatus.options].map((status) => {
              return () => readOperationPage(orm, OWNER, { limit, status });
            }),
            ...(['pending', 'closed'] as const).map((status) => {
              return () => readAllAuthorizations(orm, OWNER, { limit, status });
            }),
            ...[topUps, withdrawals, transactions].map((ofCard) => () => ofCard(quiet)),
            ...[1_000, rows - 1_000].flatMap((n) => [
              () => topUps(busy, idOf('topup', n)),
              () => withdrawals(busy, idOf('wdr', n)),
              () => transactions(busy, idOf('txn', n)),
            ]),
          ] as (() => Promise<object[]>)[])
            assert.equal((await readsLittle({ read: String(read) }, read)).length, LIMIT + 1, String(read));
          for (const type of ['decline', 'refund'] as const) {
            const found = await readsLittle({ type }, () => readTransactionPage(orm, OWNER, { limit, type }));
            assert.ok(found.length > 0, type);
          }
          for (const status of AuthorizationStatus.options) {
            for (const startingAfter of cursors('auth')) {
              const page = { limit, status, starting_after: startingAfter };
              const found = await readsLittle(page, () => readAuthorizationPage(orm, OWNER, busy, page));
              assert.equal(found.length, status === 'closed' || status === 'pending' ? LIMIT + 1 : 0);
            }
          }
          const [first] = await readsLittle({}, () => readBalanceTransactionPage(orm, OWNER, { limit: 1 }));
          const later = { limit, starting_after: first?.id };
          const found = await readsLittle(later, () => readBalanceTransactionPage(orm, OWNER, later));
          assert.equal(found.length, LIMIT + 1);
        });

        it('is a small multiple of the page for every list, whatever time its items are from', async () => {
          const cardId = idOf('card', 0);
          for (const between of range.slice(1)) {
            const page = { limit: LIMIT, ...between };
            for (const read of [
              () => readCardPage(orm, OWNER, page),
              () => readCardPage(orm, OWNER, { ...page, status: 'active' }),
              () => readCardPage(orm, OWNER, { ...page, external_ref: 'often-failed' }),
              () => readTransferPage(orm, OWNER, 'topup', { ...page, cardId }),
              () => readTransferPage(orm, OWNER, 'withdrawal', { ...page, cardId }),
              () => readCardTransactionPage(orm, OWNER, cardId, page),
              () => readAuthorizationPage(orm, OWNER, cardId, page),
              () => readAuthorizationPage(orm, OWNER, cardId, { ...page, status: 'closed' }),
              () => readDepositPage(orm, { ...OWNER, mode: 'live' }, page),
            ]) {
              await readsLittle({ between, read: String(read) }, read as () => Promise<object[]>);
            }
            // Each end is found by halving the balance's chain, and each step looks into every partition.
            const both = { modes: 3, statements: 2 };
            const balance = await readsLittle(
              between,
              () => readBalanceTransactionPage(orm, OWNER, page),
              both,
            );
            if (between.created_lte?.getTime() === at(threeQuarters).getTime())
              assert.equal(balance[0]?.balance_after, 100 * (rows - threeQuarters));
            else assert.equal(balance.length, LIMIT + 1, JSON.stringify(between));
          }
        });

        /** Limits the busy card, as its first decision after that finds it. */
        const limit = async (
          spending_limits: { amount: number; interval: LimitInterval; categories?: string[] }[],
        ) => {
          const controls = completeControls({ spending_limits });
          const card = idOf('card', 0);
          await owner.query('UPDATE card SET spending_controls = $2 WHERE id = $1', [card, controls]);
          await owner.query('SELECT count_spending(k, NULL, now()) FROM card k WHERE k.id = $1', [card]);
        };

        it('does not grow with what a card has spent for the spending limits of a card', async () => {
          await limit(LimitInterval.options.map((interval) => ({ amount: 1, interval })));
          const limits = await readsLittle({}, () => readSpendingLimits(orm, OWNER, idOf('card', 0)));
          assert.equal(limits.length, LimitInterval.options.length);
          assert.ok((limits.at(-1)?.spent ?? 0) > 100 * (rows - 1_000));
        });

        it('does not grow with what a card has had for the decision on a request of the network', async () => {
          const ask = (index: number) => ({
            card_id: idOf('card', 0),
            payment_id: `network_auth_${index}`,
            message_id: `network_message_${index}`,
            type: 'authorization',
          });
          for (const asked of [ask(0), ask(half), ask(rows - 1_000), ask(rows)]) {
            const [terms] = await readsLittle(asked, () =>
              lockTerms(orm.em.fork() as Transactor, [asked], 1_500),
            );
            const isKnown = asked.message_id !== `network_message_${rows}`;
            assert.equal(terms?.id, asked.card_id);
            assert.equal(terms.authorization !== null, isKnown);
            assert.equal(terms.answer !== null, isKnown);
          }
          // The first decision of an interval makes the counter, from the sum of the interval. Those after it read the counter.
          const asked = ask(rows);
          await limit([{ amount: 1, interval: 'daily', categories: ['5812'] }]);
          const [terms] = await readsLittle(asked, () =>
            lockTerms(orm.em.fork() as Transactor, [asked], 1_500),
          );
          assert.equal(toTerms(asked, terms).controls.limits.length, 1);
          await owner.query('UPDATE card SET spending_controls = NULL WHERE id = $1', [asked.card_id]);
        });

        it('is what the interval has for the sum of what a card has spent in it', async () => {
          const inSecond = async (n: number) => {
            const sum = { cardId: idOf('card', 0), from: at(n), until: at(n - 100) };
            const [row] = await readsLittle(sum, () => spentBetween(orm.em.fork(), sum));
            return Number(row?.cents);
          };
          // A closed authorization counts what was cleared; each has a purchase beside it.
          for (const n of [1_000, half, rows - 1_000]) assert.equal(await inSecond(n), 100 * (100 + 100));
        });

        it('is the same for a statement and GET /overview, whatever the account or others have', async () => {
          const month = new Date().toISOString().slice(0, 7);
          for (const read of [
            () => readAccountMonth(orm.em.fork(), OTHER, month),
            () => readOverview(orm.em.fork(), OWNER),
            () => readOverview(orm.em.fork(), OTHER),
          ])
            await readsLittle({ read: String(read) }, async () => [await read()], { statements: 2 });
        });

        it("is a small multiple of the page for the operator's list of what moved between a card and the balance", async () => {
          const page = { limit: LIMIT };
          const read = () => readPrepaidEntriesOfCard(orm.em.fork(), OWNER, idOf('card', 0), page);
          assert.equal((await readsLittle(page, read)).length, LIMIT);
        });

        it('is a small multiple of the page for GET /funding/deposits, including payments', async () => {
          for (const [partnerId, cursors] of [
            [OWNER.partnerId, [undefined, half, rows - 1_100]],
            [OTHER.partnerId, [undefined, rows - 990]],
          ] as const) {
            for (const n of cursors) {
              const page = { limit: LIMIT, starting_after: n === undefined ? n : idOf('dep', n) };
              const read = () => readDepositPage(orm, { partnerId, mode: 'live' }, page);
              const deposits = await readsLittle({ partnerId, ...page }, read);
              assert.equal(deposits.length, LIMIT + 1);
              assert.ok(deposits.some(({ payments }) => payments.length === 3));
            }
          }
          assert.deepEqual(await readsLittle({}, () => readDepositPage(orm, OWNER, { limit: LIMIT })), []);
        });

        it("is a small multiple of the page for the operator's transaction list of a partner and of a card", async () => {
          for (const before of [null, idOf('txn', 1_000), idOf('txn', rows - 1_000)]) {
            const since = before === null ? null : at(rows - 1);
            for (const whose of [{ partnerId: OWNER.partnerId }, { cardId: idOf('card', 0) }]) {
              const read = () => readTransactions(orm, whose, { since, before, limit: LIMIT });
              const found = await readsLittle({ ...whose, before }, read, { modes: 2 });
              assert.equal(found.length, LIMIT);
            }
          }
        });

        it("is a small multiple of the page for the operator's webhook list of a partner, whatever the filters", async () => {
          for (const status of [null, ...DeliveryStatus.options]) {
            for (const since of [null, at(100), at(rows - 1)]) {
              const filter = {
                ...{ status, since, type: null, card: null, endpoint: null },
                ...{ partner: OWNER.partnerId, limit: LIMIT },
              };
              await readsLittle(filter, () => readWebhooks(orm, filter), { modes: 2 });
            }
          }
        });
      });
    }
  });
}

/** Every combination of one value of each; those of a range are its own. */
function combined({ range = [{}], ...choices }: Record<string, readonly unknown[]>): object[] {
  return Object.entries(choices).reduce(
    (filters, [name, values]) => filters.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    range as object[],
  );
}
