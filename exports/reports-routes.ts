import { sql } from 'kysely';
import { z } from 'zod';
import { boundTime, firstId } from '../accounts/clock.ts';
import { BALANCE_TRANSACTION } from '../accounts/examples.ts';
import { BalanceTransactionResource, presentBalanceTransaction } from '../accounts/resource.ts';
import { type Declaration, declare, resource } from '../api/http/route.ts';
import type { StreamedReply, StreamLimits } from '../api/http/stream-reply.ts';
import { CONFIRMED_DEPOSIT } from '../deposits/examples.ts';
import { DepositResource, type DepositRow, presentDeposit } from '../deposits/resource.ts';
import { Timestamp } from '../domain/fields.ts';
import type { IdPrefix } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { streamPrepaidEntries } from '../ledger/balances.ts';
import {
  AuthorizationResource,
  type AuthorizationRow,
  presentAuthorization,
} from '../payments/authorization-resource.ts';
import { AUTHORIZATION, TRANSACTION } from '../payments/examples.ts';
import {
  presentTransaction,
  TransactionResource,
  type TransactionRow,
} from '../payments/transaction-resource.ts';
import {
  AUTHORIZATION_COLUMNS,
  DEPOSIT_COLUMNS,
  receivedBy,
  selectPayments,
  TRANSACTION_COLUMNS,
} from '../platform/db/columns.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { ReadReport } from '../platform/db/report-reads.ts';
import { columnList, cursorStatement, type Reader } from '../platform/db/sql.ts';
import { untilAborted } from '../platform/process/work-context.ts';
import { Csv, csvHeader, csvLines, type ReportColumn, reportColumns } from './csv.ts';
import { takeTransferSlot } from './transfer-slots.ts';

export interface ReportDependencies {
  orm: Orm;
  readReport: ReadReport;
  reportLimits: StreamLimits;
}

/** Of one report: a year, also a leap year. */
const MAX_DAYS = 366;
const MS_PER_DAY = 86_400_000;

const ReportQuery = z
  .strictObject({
    from: Timestamp.describe('Only items whose `created` is at or after this time.'),
    to: Timestamp.describe(
      `Only items whose \`created\` is before this time: at most ${MAX_DAYS} days after \`from\`.`,
    ),
  })
  .superRefine(({ from, to }, context) => {
    // It also runs if one of them is not valid.
    if (!(from instanceof Date && to instanceof Date)) return;
    const days = (to.getTime() - from.getTime()) / MS_PER_DAY;
    if (days <= 0)
      context.addIssue({ code: 'custom', path: ['to'], message: 'must be later than from', input: to });
    if (days > MAX_DAYS)
      context.addIssue({
        code: 'custom',
        path: ['to'],
        message: `must be at most ${MAX_DAYS} days after from`,
        input: to,
      });
  });

/** For the reference. */
const OCTOBER = { from: '2026-10-01T00:00:00Z', to: '2026-11-01T00:00:00Z' };

const BALANCE_TRANSACTIONS = reportColumns(BalanceTransactionResource);
const TRANSACTIONS = reportColumns(TransactionResource);
const DEPOSITS = reportColumns(DepositResource);
const AUTHORIZATIONS = reportColumns(AuthorizationResource);

/** Declares a report, whose name is the last word of its path. */
const declareReport = ({
  name,
  columns,
  example,
  ...declared
}: Pick<Declaration, 'scope' | 'operationId' | 'summary' | 'description'> & {
  name: string;
  columns: readonly ReportColumn[];
  example: object;
}) =>
  declare({
    method: 'get',
    path: `/reports/${name}`,
    ...declared,
    query: ReportQuery,
    responses: { 200: Csv },
    contentType: 'text/csv',
    examples: { query: OCTOBER, 200: csvHeader(columns) + csvLines(columns, [example]) },
  });

const reportBalanceTransactions = declareReport({
  name: 'balance_transactions',
  scope: 'balance:read',
  operationId: 'reports.balanceTransactions',
  summary: 'Download balance transactions',
  description: 'Every change to your balance in a period, as CSV, oldest first.',
  columns: BALANCE_TRANSACTIONS,
  example: BALANCE_TRANSACTION,
});

const reportCardTransactions = declareReport({
  name: 'card_transactions',
  scope: 'cards:read',
  operationId: 'reports.cardTransactions',
  summary: 'Download card transactions',
  description:
    'The transactions of all cards in a period, as CSV, oldest first. `fees` is the sum of the fees.',
  columns: TRANSACTIONS,
  example: TRANSACTION,
});

const reportDeposits = declareReport({
  name: 'deposits',
  scope: 'balance:read',
  operationId: 'reports.deposits',
  summary: 'Download deposits',
  description: 'The deposits that were created in a period, as they are now, as CSV, oldest first.',
  columns: DEPOSITS,
  example: CONFIRMED_DEPOSIT,
});

const reportAuthorizations = declareReport({
  name: 'authorizations',
  scope: 'cards:read',
  operationId: 'reports.authorizations',
  summary: 'Download authorizations',
  description:
    'The authorizations of all cards that were created in a period, declined ones included, as they are now, as CSV, oldest ' +
    'first.',
  columns: AUTHORIZATIONS,
  example: AUTHORIZATION,
});

interface Period {
  from: Date;
  to: Date;
}

export const reports = resource(
  { reportBalanceTransactions, reportCardTransactions, reportDeposits, reportAuthorizations },
  ({ orm, readReport, reportLimits }: ReportDependencies) => {
    /** @param items the items of a report, in batches */
    const csv = (
      name: string,
      caller: Tenant,
      columns: readonly ReportColumn[],
      items: (em: Reader) => AsyncIterable<object[]>,
    ): StreamedReply => ({
      headers: {
        'Content-Type': 'text/csv; charset=utf-8',
        'Content-Disposition': `attachment; filename="${name}.csv"`,
      },
      limits: reportLimits,
      async stream({ send, cut, giveWay }) {
        const slot = await takeTransferSlot(orm, caller);
        const reading = { maxIdleMs: reportLimits.stallMs, sentBytes: 0, giveWay };
        try {
          await untilAborted(AbortSignal.any([cut, slot.lost]), () =>
            readReport(reading, async (em) => {
              let unsent = csvHeader(columns);
              for await (const batch of items(em)) {
                const lines = csvLines(columns, batch);
                await send(unsent + lines);
                reading.sentBytes += Buffer.byteLength(lines);
                unsent = '';
              }
              if (unsent !== '') await send(unsent);
            }),
          );
        } finally {
          await slot.release();
        }
      },
    });

    return {
      reportBalanceTransactions: async ({ caller, query }) =>
        csv('balance_transactions', caller, BALANCE_TRANSACTIONS, async function* (em) {
          for await (const entries of streamPrepaidEntries(em, caller, query))
            yield entries.map((entry) => presentBalanceTransaction(entry, caller.mode));
        }),

      reportCardTransactions: async ({ caller, query }) =>
        csv('card_transactions', caller, TRANSACTIONS, async function* (em) {
          for await (const rows of selectTransactions(em, caller, rangeOf(query)))
            yield rows.map(presentTransaction);
        }),

      reportDeposits: async ({ caller, query }) =>
        csv('deposits', caller, DEPOSITS, async function* (em) {
          for await (const rows of selectDeposits(em, caller, rangeOf(query))) yield rows.map(presentDeposit);
        }),

      reportAuthorizations: async ({ caller, query }) =>
        csv('authorizations', caller, AUTHORIZATIONS, async function* (em) {
          for await (const rows of selectAuthorizations(em, caller, rangeOf(query)))
            yield rows.map(presentAuthorization);
        }),
    };
  },
);

/** Rows are written within moments of the time in their ids. */
const ID_MARGIN_MS = 3_600_000;

/** A period, and the times between which all ids of what was created in it were made. */
const rangeOf = ({ from, to }: Period) => ({
  from,
  to,
  idsFrom: boundTime(new Date(from.getTime() - ID_MARGIN_MS)),
  idsTo: boundTime(new Date(to.getTime() + ID_MARGIN_MS)),
});

type Range = Tenant & ReturnType<typeof rangeOf>;

/**
 * WHERE and ORDER BY of a report of the rows `r`. It compares and orders by whole keys, so that only the index
 * on those serves it (docs/decisions/lists-by-whole-keys.md).
 */
const inPeriod = (prefix: IdPrefix, { partnerId, mode, from, to, idsFrom, idsTo }: Range) => sql`
    WHERE (r.partner_id, r.mode, r.id) >= (${partnerId}, ${mode}, ${firstId(prefix, { partnerId, mode }, idsFrom)})
      AND (r.partner_id, r.mode, r.id) < (${partnerId}, ${mode}, ${firstId(prefix, { partnerId, mode }, idsTo)})
      AND r.created_at >= ${from} AND r.created_at < ${to}
    ORDER BY r.partner_id, r.mode, r.id`;

const selectTransactions = cursorStatement(
  (_, range: Range) => sql<TransactionRow>`
    SELECT ${columnList('card_transaction', TRANSACTION_COLUMNS, 'r')} FROM card_transaction r
    ${inPeriod('txn', range)}`,
);

const selectDeposits = cursorStatement(
  (_, range: Range) => sql<DepositRow>`
    SELECT ${columnList('deposit', DEPOSIT_COLUMNS, 'r')}, ${receivedBy('r')} AS received_micro_usdt,
      ${selectPayments('r')} AS payments
    FROM deposit r ${inPeriod('dep', range)}`,
);

const selectAuthorizations = cursorStatement(
  (_, range: Range) => sql<AuthorizationRow>`
    SELECT ${columnList('card_authorization', AUTHORIZATION_COLUMNS, 'r')} FROM card_authorization r
    ${inPeriod('auth', range)}`,
);
