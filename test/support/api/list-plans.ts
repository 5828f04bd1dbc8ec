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
import type { Tenant } from '../../../domain/mode.ts';
import { completeControls, LimitInterval } from '../../../domain/spending-controls.ts';
import { TransactionType } from '../../../domain/transaction.ts';
import { readOverview } from '../../../exports/overview-routes.ts';
import { readAccountMonth } from '../../../ledger/account-month.ts';
import { readPrepaidEntriesOfCard } from '../../../ledger/balances.ts';
import { readAllAuthorizations, readAuthorizationPage } from '../../../payments/authorizations-routes.ts';
import { readSpendingLimits } from '../../../payments/spending-limits-routes.ts';
import { lockPaymentTerms } from '../../../payments/terms.ts';
import { readTransactions } from '../../../payments/transaction-operator-reads.ts';
import { readCardTransactionPage, readTransactionPage } from '../../../payments/transactions-routes.ts';
import { lowestId } from '../../../platform/crypto/new-id.ts';
import type { Orm } from '../../../platform/db/orm.ts';
import { readStatement, type Transactor } from '../../../platform/db/sql.ts';
import { readOperationPage } from '../../../requests/routes.ts';
import { OperationStatus } from '../../../requests/rules.ts';
import { readEventPage } from '../../../webhooks/events-routes.ts';
import { readWebhooks } from '../../../webhooks/reads.ts';
import { splitFirst } from '../partitions.ts';
import { connectTo, createTestDatabase, ownerUrlOf } from '../postgres.ts';

const LIMIT = 20;
/** What a page may cost: of each type or status a page is looked at, and for each row its own few. */
const MOST_ROWS = 20 * (LIMIT + 1);
const MOST_BLOCKS = 60 * (LIMIT + 1);
/** Between two rows. */
const STEP_MS = 10;

const OWNER: Tenant = { partnerId: 'prt_owner', mode: 'test' };
const OTHER: Tenant = { partnerId: 'prt_other', mode: 'test' };

const spentBetween = readStatement(
  (_, { cardId, from, until }: { cardId: string; from: Date; until: Date }) =>
    sql<{ cents: string }>`SELECT spent_between(${cardId}, NULL, ${from}, ${until}) AS cents`,
);

interface PlanNode {
  'Node Type': string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  Plans?: PlanNode[];
}

interface Size {
  /** Of each table. */
  rows: number;
  /** Of each table that is partitioned by time: the rows are spread over all of them. */
  partitions: number;
}

/**
 * Every list, with each of its filters and all of them together, on an account with this many rows of it: the rows that
 * PostgreSQL reads for a page are a small multiple of the page. What is common and what is rare are on opposite ends, so
 * that a walk from the newest meets a rare one last, and many combinations have no row at all.
 */
export function describeListPlans({ rows, partitions }: Size): void {
  describe(`the number of rows that a list reads of ${rows} in ${partitions} partitions`, () => {
    let owner: pg.Client;
    let orm: Orm;
    const plans: PlanNode[] = [];
    const prepared: string[] = [];
    /** Whether the rows are wanted, or the plan alone. */
    let isRead = true;
    /** All rows are of one day, since a daily limit starts anew at midnight. */
    const newestMs = Math.max(Date.now() - 60_000, new Date().setUTCHours(0, 0, 0, 0) + (rows + 1) * STEP_MS);
    const idOf = (prefix: IdPrefix, n: number) =>
      `${lowestId(prefix, new Date(newestMs - n * STEP_MS)).slice(0, -8)}${String(n).padStart(8, '0')}`;
    const at = (n: number) => new Date(newestMs - n * STEP_MS);
    const half = rows / 2;
    const threeQuarters = (rows * 3) / 4;
    const RANGES = [
      {},
      { created_gte: at(threeQuarters) },
      { created_lte: at(threeQuarters) },
      { created_gte: at(threeQuarters + 100), created_lte: at(threeQuarters) },
      { created_gte: at(rows - 1), created_lte: at(100) },
    ];
    const cursors = (prefix: IdPrefix) => [undefined, idOf(prefix, 1_000)];
    /** Any card, one with nearly everything, one with the rest, and one with nothing. */
    const cardId = [undefined, idOf('card', 0), idOf('card', 1), idOf('card', 2)];
    const range = RANGES;
    // biome-ignore lint/suspicious/noExplicitAny: each has the filters of its own list.
    const FILTERED: { list: string; filters: object[]; read: (page: any) => Promise<object[]> }[] = [
      {
        list: 'GET /events',
        filters: [
          ...combined({
            type: [undefined, 'card.issued', 'card.transaction.created', 'deposit.confirmed', 'ping'],
            ...{
              delivery_status: [undefined, ...DeliveryStatus.options],
              range,
              starting_after: cursors('evt'),
            },
          }),
          ...combined({ card_id: cardId, range, starting_after: cursors('evt') }),
          ...combined({
            ...{
              card_id: cardId.slice(1),
              type: ['card.issued', 'topup.succeeded', 'deposit.confirmed', 'ping'],
            },
            ...{ range, starting_after: cursors('evt') },
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
      await partition();
      await seed();
      await owner.query('ANALYZE');
      // The service's own statements, each looked at before it is run.
      const executor = {
        executeQuery: async ({ sql, parameters }: { sql: string; parameters: readonly unknown[] }) => {
          const isNew = !prepared.includes(sql);
          if (isNew) prepared.push(sql);
          const name = `listed_${prepared.indexOf(sql)}`;
          if (isNew) await owner.query(`PREPARE ${name} AS ${sql}`);
          const run = `EXECUTE ${name}${parameters.length === 0 ? '' : `(${parameters.map(literal)})`}`;
          const explained = await owner.query(`EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ${run}`);
          plans.push(explained.rows[0]['QUERY PLAN'][0].Plan);
          return isRead ? owner.query(run) : { rows: [{ id: null, known: true }] };
        },
      };
      orm = { em: { fork: () => ({ getTransactionContext: () => executor }) } } as unknown as Orm;
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
          for (const range of RANGES.slice(1)) {
            const page = { limit: LIMIT, ...range };
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
              await readsLittle({ range, read: String(read) }, read as () => Promise<object[]>);
            }
            // Each end is found by halving the balance's chain, and each step looks into every partition.
            const balance = await readsLittle(range, () => readBalanceTransactionPage(orm, OWNER, page), {
              modes: 3,
              statements: 2,
            });
            const newer = rows - threeQuarters;
            const { created_gte: createdGte, created_lte: createdLte } = range as {
              created_gte?: Date;
              created_lte?: Date;
            };
            if (createdLte?.getTime() === at(threeQuarters).getTime())
              assert.equal(balance[0]?.balance_after, 100 * newer);
            else assert.equal(balance.length, LIMIT + 1, JSON.stringify({ createdGte, createdLte }));
          }
        });

        it('does not grow with what a card has spent for the spending limits of a card', async () => {
          const cardId = idOf('card', 0);
          const controls = completeControls({
            spending_limits: LimitInterval.options.map((interval) => ({ amount: 1, interval })),
          });
          await owner.query('UPDATE card SET spending_controls = $2 WHERE id = $1', [cardId, controls]);
          await owner.query('SELECT count_spending(k, NULL, now()) FROM card k WHERE k.id = $1', [cardId]);
          const limits = await readsLittle({}, () => readSpendingLimits(orm, OWNER, cardId));
          assert.equal(limits.length, LimitInterval.options.length);
          assert.ok((limits.at(-1)?.spent ?? 0) > 100 * (rows - 1_000));
        });

        it('does not grow with what a card has had for the decision on a request of the network', async () => {
          const ask = (index: number) => ({
            cardId: idOf('card', 0),
            paymentId: `network_auth_${index}`,
            messageId: `network_message_${index}`,
            lockWaitMs: 1_500,
          });
          for (const asked of [ask(0), ask(half), ask(rows - 1_000), ask(rows)]) {
            const [terms] = await readsLittle(asked, async () => [
              await lockPaymentTerms(orm.em.fork() as Transactor, asked),
            ]);
            const isKnown = asked.messageId !== `network_message_${rows}`;
            assert.equal(terms?.card.id, asked.cardId);
            assert.equal(terms.authorization !== null, isKnown);
            assert.equal(terms.answer !== null, isKnown);
          }
          // The first decision of an interval makes the counter, from the sum of the interval. Those after it read the counter.
          const asked = ask(rows);
          const controls = completeControls({
            spending_limits: [{ amount: 1, interval: 'daily', categories: ['5812'] }],
          });
          await owner.query('UPDATE card SET spending_controls = $2 WHERE id = $1', [asked.cardId, controls]);
          await owner.query('SELECT count_spending(k, NULL, now()) FROM card k WHERE k.id = $1', [
            asked.cardId,
          ]);
          const [terms] = await readsLittle({ ...asked, controls }, async () => [
            await lockPaymentTerms(orm.em.fork() as Transactor, asked),
          ]);
          assert.equal(terms?.controls.limits.length, 1);
          await owner.query('UPDATE card SET spending_controls = NULL WHERE id = $1', [asked.cardId]);
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

        it('is what the account has booked for its statement, whatever others have', async () => {
          const month = new Date().toISOString().slice(0, 7);
          const read = async () => [await readAccountMonth(orm.em.fork(), OTHER, month)];
          await readsLittle({ month }, read, { statements: 2 });
        });

        it('is the same for GET /overview, whatever the account has', async () => {
          for (const tenant of [OWNER, OTHER])
            await readsLittle(tenant, async () => [await readOverview(orm.em.fork(), tenant)], {
              statements: 2,
            });
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

    /** @param modes how many of them are read at once @param wantsRows false: none are returned */
    async function readsLittle<T>(
      asked: object,
      read: () => Promise<T[]>,
      { modes = 1, statements = 1, wantsRows = true } = {},
    ): Promise<T[]> {
      plans.length = 0;
      isRead = wantsRows;
      const found = await read();
      assert.equal(plans.length, statements);
      const what = JSON.stringify(asked);
      for (const plan of plans) {
        const scanned = rowsRead(plan);
        assert.ok(
          scanned <= modes * MOST_ROWS,
          `${scanned} rows for ${what}: ${JSON.stringify(plan, null, 1)}`,
        );
        const blocks = plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
        assert.ok(
          blocks <= modes * MOST_BLOCKS,
          `${blocks} blocks for ${what}: ${JSON.stringify(plan, null, 1)}`,
        );
      }
      return found;
    }

    /** What the scans of tables and indexes looked at, whether it was used or not. */
    function rowsRead(node: PlanNode): number {
      const below = (node.Plans ?? []).reduce((sum, plan) => sum + rowsRead(plan), 0);
      if (!/^(Seq|Index|Index Only|Bitmap Heap|Bitmap Index) Scan$/.test(node['Node Type'])) return below;
      const looked =
        node['Actual Rows'] +
        (node['Rows Removed by Filter'] ?? 0) +
        (node['Rows Removed by Index Recheck'] ?? 0);
      return below + Math.ceil(looked * node['Actual Loops']);
    }

    function literal(value: unknown): string {
      if (value === null) return 'NULL';
      if (Array.isArray(value)) return owner.escapeLiteral(`{${value.join(',')}}`);
      return owner.escapeLiteral(value instanceof Date ? value.toISOString() : String(value));
    }

    async function partition(): Promise<void> {
      const cuts = Array.from({ length: partitions - 1 }, (_, i) => i + 1);
      const moments = cuts.map((cut) => at(Math.round((1 - cut / partitions) * rows)));
      const ids = moments.map((moment) => lowestId('evt', moment).slice(0, -16));
      await splitFirst(owner, 'event', ids);
      await splitFirst(owner, 'delivery_attempt', ids);
      const years = cuts.map((cut) => `${new Date().getUTCFullYear() - partitions + cut}-01-01`);
      await splitFirst(owner, 'ledger.entry', years);
    }

    /** Straight into the tables: what the triggers and foreign keys check is not what is looked at here. */
    async function seed(): Promise<void> {
      await owner.query(`SET session_replication_role = replica`);
      await owner.query(
        `CREATE TEMP TABLE row (n int PRIMARY KEY, partner text, at timestamptz, card text, evt text, topup text, txn text, auth text, dep text, wdr text)`,
      );
      for (let from = 0; from < rows; from += 20_000) {
        const numbers = Array.from({ length: 20_000 }, (_, i) => from + i);
        const ids = (prefix: IdPrefix) => numbers.map((n) => idOf(prefix, n));
        await owner.query(
          `INSERT INTO row SELECT * FROM unnest($1::int[], $2::text[], $3::timestamptz[], $4::text[], $5::text[],
           $6::text[], $7::text[], $8::text[], $9::text[], $10::text[])`,
          [
            numbers,
            numbers.map((n) => (n >= rows - 1_000 && n < rows - 300 ? OTHER.partnerId : OWNER.partnerId)),
            numbers.map((n) => at(n).toISOString()),
            ids('card'),
            ids('evt'),
            ids('topup'),
            ids('txn'),
            ids('auth'),
            ids('dep'),
            ids('wdr'),
          ],
        );
      }
      for (const statement of seedStatements({ rows, partitions })) await owner.query(statement);
      await owner.query(`SET session_replication_role = origin`);
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

function seedStatements({ rows, partitions }: Size): string[] {
  return [
    `INSERT INTO partner (id, name) VALUES ('${OWNER.partnerId}', 'Owner'), ('${OTHER.partnerId}', 'Other')`,
    `INSERT INTO product (code, bin, network) VALUES ('USD', '424242', 'visa')`,
    // The newest quarter is pending or has no endpoint, then comes what was delivered, and at last a few of each other.
    // The newest half has no key, and so is no operation.
    `INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, fingerprint, request_id, lease_expires_at, response_status,
     response_body, created_at, operation_status)
   SELECT replace(evt, 'evt_', 'claim_'), partner, 'test', CASE WHEN n >= ${rows / 2} OR n = 7 THEN 'key ' || n END, 'create_card', '', 'req',
     at, 201, '', at, CASE WHEN n < ${rows / 2} THEN NULL WHEN n >= ${rows - 100} THEN 'awaiting_review' WHEN n >= ${rows - 200} THEN 'in_progress'
       ELSE 'completed' END FROM row`,
    `INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
   SELECT evt, partner, 'test', CASE WHEN n >= ${rows - 100} THEN 'deposit.confirmed' WHEN n >= ${(rows * 3) / 4} THEN 'topup.succeeded'
     WHEN n % 2 = 0 THEN 'card.issued' ELSE 'card.transaction.created' END,
     CASE WHEN partner = '${OWNER.partnerId}' THEN (SELECT card FROM row c WHERE c.n = (row.n >= ${rows - 100})::int) END,
     json_build_object('id', evt, 'created', at), at FROM row`,
    `INSERT INTO delivery (event_id, endpoint_id, partner_id, mode, type, status)
   SELECT e.id, '', e.partner_id, e.mode, e.type, CASE WHEN n >= ${rows - 50} THEN (ARRAY['given_up', 'retrying', 'parked'])[1 + n % 3]
     WHEN n < ${rows / 8} THEN 'pending' WHEN n < ${rows / 4} THEN 'no_endpoint'
     WHEN n % 2 = 0 THEN 'delivered' ELSE 'given_up' END
   FROM row JOIN event e ON e.id = row.evt`,
    `INSERT INTO delivery_attempt (event_id, endpoint_id, number, started_at, duration_ms, delivered)
   SELECT evt, '', 1, at, 1, true FROM row WHERE n % 2 = 0 AND n >= ${rows / 4}`,
    `INSERT INTO card (id, partner_id, mode, status, external_ref, product_code, network, network_card_id, failure_code, funding_cents,
     fees, created_at)
   SELECT card, partner, 'test', CASE WHEN n = 0 THEN 'active' WHEN n < ${rows / 2} THEN 'failed' WHEN n >= ${rows - 10} THEN 'frozen'
       WHEN n >= ${rows - 20} THEN 'blocked' ELSE 'active' END,
     CASE WHEN n = ${(rows * 3) / 4} OR n BETWEEN 1 AND ${rows / 4} THEN 'often-failed' ELSE 'ref-' || n END, 'USD', 'visa', card,
     CASE WHEN n BETWEEN 1 AND ${rows / 2 - 1} THEN 'network_declined' END, 100, '[]', at FROM row`,
    `INSERT INTO ledger.account (id, partner_id, mode, kind, card_id)
   SELECT 'card/' || card, partner, 'test', 'card', card FROM row`,
    `INSERT INTO card_transfer (id, partner_id, mode, card_id, direction, status, amount_cents, card_balance_cents, created_at, completed_at)
   SELECT CASE direction WHEN 'topup' THEN topup ELSE wdr END, '${OWNER.partnerId}', 'test',
     (SELECT card FROM row c WHERE c.n = (row.n >= ${rows - 100})::int), direction, 'succeeded', 100, 0, at, at
   FROM row CROSS JOIN unnest('{topup,withdrawal}'::text[]) d (direction)`,
    `INSERT INTO card_transaction (id, partner_id, mode, card_id, network_transaction_id, type,
     amount_cents, fees, charged_to, card_balance_after_cents, created_at, decline_reason)
   SELECT txn, '${OWNER.partnerId}', 'test', (SELECT card FROM row c WHERE c.n = (row.n >= ${rows - 100})::int), txn, kind, 100, '[]', 'card', 0, at, CASE kind WHEN 'decline' THEN 'card_frozen' END
   FROM row CROSS JOIN LATERAL (SELECT CASE WHEN n >= ${rows - 10} THEN 'refund' WHEN n >= ${rows - 50} THEN 'decline' ELSE 'purchase' END) k (kind)`,
    `INSERT INTO card_authorization (id, partner_id, mode, card_id, status, amount_cents, held_cents, settled_cents, requests, holds,
     expires_at, created_at, network_authorization_id)
   SELECT auth, '${OWNER.partnerId}', 'test', (SELECT card FROM row c WHERE c.n = (row.n >= ${rows - 100})::int),
     CASE WHEN n >= ${rows - 150} THEN 'pending' ELSE 'closed' END, 100, CASE WHEN n >= ${rows - 150} THEN 100 ELSE 0 END,
     CASE WHEN n >= ${rows - 150} THEN 0 ELSE 100 END, '[1]', 1, at, at, 'network_auth_' || n FROM row`,
    `INSERT INTO payment (mode, payment_id, partner_id, card_id, authorization_id, said, requests, cleared_cents, is_expired)
   SELECT 'test', 'network_auth_' || n, '${OWNER.partnerId}', (SELECT card FROM row c WHERE c.n = 0), auth,
     '{"version": [], "unreadable": []}', '[]', 0, false FROM row`,
    `INSERT INTO simulated_message (id, payment_id, network_card_id, said, answer)
   SELECT 'network_message_' || n, 'network_auth_' || n, 'net', '{}', '{}' FROM row`,
    `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash, amount_cents,
     status, created_at, expires_at)
   SELECT dep, partner, 'live', 'private', 'T', n, 'T', decode(lpad(to_hex(n), 40, '0'), 'hex'), 100, 'expired', at, at
   FROM row`,
    `INSERT INTO deposit_payment (network, tx_hash, log_index, deposit_id, partner_id, mode, value_micro_usdt, block_number,
     transaction_index, block_time, status)
   SELECT 'private', md5(n::text) || md5(n::text), i, dep, partner, 'live', 1, n + 1, 0, at, 'returned'
   FROM row CROSS JOIN generate_series(0, 2) i WHERE n % 4 = 0`,
    `INSERT INTO ledger.account (id, partner_id, mode, kind, posted, version)
   VALUES ('prepaid/test/${OWNER.partnerId}', '${OWNER.partnerId}', 'test', 'prepaid', ${100 * rows}, ${rows})`,
    // The balance's first transfer is its oldest.
    `INSERT INTO ledger.transfer (id, fingerprint, operation_id, partner_id, mode, code, phase, debit_id, credit_id, amount, created_at)
   SELECT md5(n::text)::uuid, '', 'faucet/credit_' || n, '${OWNER.partnerId}', 'test', 'fund_faucet', 'single',
     'faucet/test/${OWNER.partnerId}', 'prepaid/test/${OWNER.partnerId}', 100, at + (2 * n - ${rows - 1}) * interval '${STEP_MS} milliseconds' FROM row`,
    `INSERT INTO ledger.entry (transfer_id, side, account_id, amount, balance_after, account_version, booked_on)
   SELECT md5(n::text)::uuid, 'credit', 'prepaid/test/${OWNER.partnerId}', 100, 100 * (n + 1), n + 1,
     current_date - make_interval(years => (${partitions - 1}) - n / ${Math.ceil(rows / partitions)})
   FROM row`,
    `INSERT INTO ledger.entry (transfer_id, side, account_id, amount, balance_after, account_version, booked_on)
   SELECT transfer_id, 'debit', 'card/' || (SELECT card FROM row WHERE n = 0), amount, balance_after, account_version, booked_on
   FROM ledger.entry WHERE account_id = 'prepaid/test/${OWNER.partnerId}'`,
  ];
}
