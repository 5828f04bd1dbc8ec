import { sql } from 'kysely';
import { z } from 'zod';
import { declareList } from '../api/http/list.ts';
import { type PageRequest, presentList } from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import { Fee, FundingKind, feePlanOf, quoteFunding } from '../domain/fees.ts';
import { AmountCents, ObjectType, Usd } from '../domain/fields.ts';
import { Mode, type Tenant } from '../domain/mode.ts';
import {
  EVERY_VERSION,
  readAlertThreshold,
  readBalance,
  readPrepaidEntries,
  readPrepaidVersions,
} from '../ledger/balances.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { autocommitStatement, readStatement } from '../platform/db/sql.ts';
import { BALANCE_ALERT, BALANCE_TRANSACTION, BALANCE_WITH_HOLD, PING, QUOTE } from './examples.ts';
import {
  BalanceResource,
  BalanceTransactionResource,
  parseVersion,
  presentBalance,
  presentBalanceTransaction,
} from './resource.ts';

const Ping = z
  .object({
    ok: z.literal(true).describe('Always `true`.'),
    partner_id: z.string().describe("Your account's id. Prefix `prt_`."),
    partner_name: z.string().describe("Your account's name."),
    mode: Mode,
  })
  .meta({ id: 'Ping', description: 'The account and mode that an API key belongs to.' });

const ping = declare({
  method: 'get',
  path: '/ping',
  scope: null,
  operationId: 'account.ping',
  summary: 'Check an API key',
  description: 'Tells you which account and mode the key belongs to.',
  responses: { 200: Ping },
  examples: { 200: PING },
});

export const account = resource({ ping }, () => ({
  ping: async ({ caller }) => ({
    status: 200,
    body: { ok: true, partner_id: caller.partnerId, partner_name: caller.partnerName, mode: caller.mode },
  }),
}));

/** Body of PUT /balance/alert. */
const BalanceAlertRequest = z
  .strictObject({
    threshold: AmountCents.nullable().describe(
      'We tell you when your available balance falls below this, in cents. Null turns the alert off.',
    ),
  })
  .meta({ id: 'SetBalanceAlertRequest', description: 'When to tell you that your balance is low.' });

/** When an account is told that its balance is low (docs/partners/balance.md). */
const BalanceAlertResource = z
  .object({
    object: ObjectType('balance_alert'),
    threshold: z
      .int()
      .min(1)
      .nullable()
      .describe('`balance.low` is sent when your available balance falls below this, in cents. Null: off.'),
    mode: Mode,
  })
  .meta({ id: 'BalanceAlert', description: 'When we tell you that your balance is low.' });
type BalanceAlertResource = z.infer<typeof BalanceAlertResource>;

const getBalanceAlert = declare({
  method: 'get',
  path: '/balance/alert',
  scope: 'balance:read',
  operationId: 'balance.getAlert',
  summary: 'Retrieve the balance alert',
  description:
    "When we tell you that the balance of the key's mode is low. Its `threshold` is null if you never set it.",
  responses: { 200: BalanceAlertResource },
  examples: { 200: BALANCE_ALERT },
});

const setAlert = declare({
  method: 'put',
  path: '/balance/alert',
  scope: 'funding:write',
  operationId: 'balance.setAlert',
  summary: 'Set the balance alert',
  description:
    'Sets the threshold for the available balance. `balance.low` is sent when it falls below it, at once if it is below it now. ' +
    '`balance.recovered` is sent when it is at the threshold or above it again. Null turns the alert off.',
  body: BalanceAlertRequest,
  responses: { 200: BalanceAlertResource },
  examples: { body: { threshold: BALANCE_ALERT.threshold }, 200: BALANCE_ALERT },
});

export const balanceAlert = resource(
  { getBalanceAlert, setAlert },
  ({ orm, eventsWritten }: { orm: Orm; eventsWritten(): void }) => ({
    getBalanceAlert: async ({ caller }) => ({
      status: 200,
      body: present(caller.mode, await readAlertThreshold(orm.em.fork(), caller)),
    }),

    async setAlert({ caller, body: { threshold } }) {
      await setThreshold(orm, { partnerId: caller.partnerId, mode: caller.mode, threshold });
      eventsWritten();
      return { status: 200, body: present(caller.mode, threshold) };
    },
  }),
);

const present = (mode: BalanceAlertResource['mode'], threshold: number | null): BalanceAlertResource => ({
  object: 'balance_alert',
  threshold,
  mode,
});

/**
 * Sets the threshold of an account's balance alert; null turns it off. If the balance is on the other side of
 * it, this writes the event (docs/decisions/balance-alerts.md).
 */
const setThreshold = autocommitStatement(
  (_, { partnerId, mode, threshold }: Tenant & { threshold: number | null }) =>
    sql`SELECT ledger.set_alert(${partnerId}, ${mode}, ${threshold})`,
);

const getBalance = declare({
  method: 'get',
  path: '/balance',
  scope: 'balance:read',
  operationId: 'balance.get',
  summary: 'Retrieve your balance',
  description: "The balance of the key's mode.",
  responses: { 200: BalanceResource },
  examples: { 200: BALANCE_WITH_HOLD },
});

const listBalanceTransactions = declareList({
  path: '/balance/transactions',
  scope: 'balance:read',
  operationId: 'balanceTransactions.list',
  summary: 'List balance transactions',
  description:
    'Every change to your balance, newest first. The amounts add up to its `total`. Money on hold is not listed until it is ' +
    'debited.',
  idPrefix: 'btx',
  item: BalanceTransactionResource,
  example: BALANCE_TRANSACTION,
});

export const balance = resource(
  { getBalance, listBalanceTransactions },
  ({ orm, readList }: { orm: Orm; readList: ReadList }) => ({
    getBalance: async ({ caller }) => ({
      status: 200,
      body: presentBalance(caller.mode, await readBalance(orm.em.fork(), caller.partnerId, caller.mode)),
    }),

    async listBalanceTransactions({ caller, query }) {
      const rows = await readList((from) => readBalanceTransactionPage(from, caller, query));
      return { status: 200, body: presentList(rows, query.limit) };
    },
  }),
);

/**
 * Up to `limit` + 1 changes to the prepaid balance, newest first, by key.
 * @throws ApiError `validation_failed` if `starting_after` is not a change to this balance.
 */
export async function readBalanceTransactionPage(
  orm: Orm,
  { partnerId, mode }: Tenant,
  page: PageRequest,
): Promise<BalanceTransactionResource[]> {
  const { limit, starting_after: startingAfter, created_gte: createdGte, created_lte: createdLte } = page;
  const em = orm.em.fork();
  const read = (rows: number, fromVersion: bigint) =>
    readPrepaidEntries(em, partnerId, mode, { limit: rows, fromVersion });
  const isFiltered = createdGte !== undefined || createdLte !== undefined;
  const { above, upTo } = isFiltered
    ? await readPrepaidVersions(em, { partnerId, mode }, createdGte, createdLte)
    : EVERY_VERSION;
  const after = startingAfter === undefined ? null : parseVersion(startingAfter);
  const entries =
    after === null || after > upTo
      ? [...(after === null ? [] : await read(1, after)), ...(await read(limit + 1, upTo))]
      : await read(limit + 2, after);
  const known = after === null ? undefined : entries.shift();
  if (
    startingAfter !== undefined &&
    (known === undefined || presentBalanceTransaction(known, mode).id !== startingAfter)
  ) {
    throw ApiError.ofField('starting_after', 'starting_after is not the id of a balance transaction');
  }
  return entries
    .filter(({ version }) => version > above)
    .map((entry) => presentBalanceTransaction(entry, mode));
}

const QuoteRequest = z
  .strictObject({
    type: FundingKind.describe('What the quote is for.'),
    amount: AmountCents.describe('Cents to land on the card.'),
  })
  .meta({ id: 'CreateQuoteRequest', description: 'What the quote is for.' });

const QuoteResource = z
  .object({
    type: FundingKind,
    currency: Usd,
    card_amount: z.int().min(1).describe('Cents that land on the card.'),
    total_debited: z.int().min(1).describe('Cents debited from your balance: `card_amount` plus all fees.'),
    fees: z.array(Fee).describe('Fees on top of the amount. A fee of zero is left out.'),
  })
  .meta({ id: 'Quote', description: 'What a card or a top-up costs.' });

const createQuote = declare({
  method: 'post',
  path: '/quotes',
  scope: null,
  operationId: 'quotes.create',
  summary: 'Create a quote',
  description: 'What a card or a top-up would cost now, at your rates. Nothing is debited.',
  body: QuoteRequest,
  responses: { 200: QuoteResource },
  examples: { body: { type: 'card_issue', amount: 5_000 }, 200: QUOTE },
});

export const quotes = resource({ createQuote }, ({ orm }: { orm: Orm }) => ({
  async createQuote({ caller, body }) {
    const [row] = await selectFeePlan(orm.em.fork(), { partnerId: caller.partnerId });
    const plan = feePlanOf(row?.fee_plan ?? null);
    const { fees, totalDebitedCents } = quoteFunding(plan, body.type, body.amount);
    return {
      status: 200,
      body: {
        type: body.type,
        currency: 'USD',
        card_amount: body.amount,
        total_debited: totalDebitedCents,
        fees,
      },
    };
  },
}));

const selectFeePlan = readStatement((db, { partnerId }: { partnerId: string }) =>
  db.selectFrom('partner').select('fee_plan').where('id', '=', partnerId),
);
