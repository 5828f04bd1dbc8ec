import { z } from 'zod';
import { keyedRequest, replyOnce } from '../api/http/keyed.ts';
import {
  CREATED_FILTERS,
  idRange,
  Limit,
  listEnvelope,
  type PageRequest,
  type PageValues,
  pageRows,
  pageValues,
  presentList,
  requestedPage,
  requireStartingAfter,
  StartingAfter,
} from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { exampleList } from '../api/openapi/examples.ts';
import { ApiError } from '../domain/api-error.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { DEPOSIT_COLUMNS, of, receivedBy, selectPayments } from '../platform/db/columns.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { tenantStatement } from '../platform/db/sql.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { watchDepositWorkflowId } from '../workflows/messages.ts';
import { CONFIRMED_DEPOSIT, DEPOSIT } from './examples.ts';
import { type DepositTerms, openDeposit } from './open.ts';
import { DepositRequest, DepositResource, type DepositRow, presentDeposit } from './resource.ts';

export interface DepositDependencies extends CommandContext {
  /** Null if this installation takes no deposits. */
  depositTerms: DepositTerms | null;
  /** Tells the workers that there is a deposit to watch. */
  depositsChanged(): void;
}

const createDeposit = declare({
  method: 'post',
  path: '/funding/deposit-address',
  scope: 'funding:write',
  operationId: 'deposits.create',
  summary: 'Create a deposit address',
  description:
    'Creates an address for a USDT (TRC-20) payment. Send one payment of exactly `amount_usdt` to `address` before ' +
    '`expires_at`. Your balance is credited about a minute after the payment is in a block, and `deposit.confirmed` ' +
    'tells you. Create a new address for every deposit.',
  mode: 'live',
  idempotencyKey: 'accepted',
  query: z.strictObject({}),
  body: DepositRequest,
  responses: { 201: DepositResource },
  examples: { body: { amount: 250_000 }, 201: DEPOSIT },
  errors: [
    'test_key_not_allowed',
    'deposits_not_configured',
    'idempotency_in_flight',
    'limit_exceeded',
    'idempotency_conflict',
  ],
});

const listDeposits = declare({
  method: 'get',
  path: '/funding/deposits',
  scope: 'balance:read',
  operationId: 'deposits.list',
  summary: 'List deposits',
  description:
    'Every deposit address you created, with its status and the payments it received, newest first. In test mode, the deposits of `POST /test/deposits`.',
  query: z.strictObject({ limit: Limit, starting_after: StartingAfter('dep'), ...CREATED_FILTERS }),
  responses: { 200: listEnvelope(DepositResource) },
  examples: { 200: exampleList(CONFIRMED_DEPOSIT) },
});

const getDeposit = declare({
  method: 'get',
  path: '/funding/deposits/:depositId',
  scope: 'balance:read',
  operationId: 'deposits.get',
  summary: 'Retrieve a deposit',
  description: 'The address, its status, and the payments it received.',
  query: z.strictObject({}),
  responses: { 200: DepositResource },
  examples: { 200: CONFIRMED_DEPOSIT },
  errors: ['deposit_not_found'],
});

export const deposits = resource(
  { createDeposit, listDeposits, getDeposit },
  (dependencies: DepositDependencies & { readList: ReadList }) => ({
    async createDeposit(input) {
      const { depositTerms } = dependencies;
      if (depositTerms === null) throw new ApiError('deposits_not_configured');
      const request = keyedRequest('create_deposit', input, null);
      const response = await openDeposit(dependencies, depositTerms, request, input.body.amount);
      if (!response.replayed) input.log({ workflowId: watchDepositWorkflowId(request.resourceId) });
      return replyOnce(response, dependencies.depositsChanged);
    },

    async listDeposits({ caller, query }) {
      const deposits = await dependencies.readList((orm) =>
        readDepositPage(orm, caller, requestedPage(query)),
      );
      return { status: 200, body: presentList(deposits, query.limit) };
    },

    async getDeposit({ caller, params: { depositId = '' } }) {
      const [row] = isId('dep', depositId)
        ? await one(dependencies.orm.em.fork(), caller, { depositId })
        : [];
      if (row === undefined) throw new ApiError('deposit_not_found');
      return { status: 200, body: presentDeposit(row) };
    },
  }),
);

/**
 * Up to `limit` + 1 deposits, newest first, by key.
 * @throws ApiError `validation_failed` if `startingAfter` is not a deposit of the tenant.
 */
export async function readDepositPage(
  orm: Orm,
  tenant: Tenant,
  page: PageRequest,
): Promise<DepositResource[]> {
  const rows = await selectPage(orm.em.fork(), tenant, pageValues(page));
  return pageRows<DepositRow>(rows, 'a deposit').map(presentDeposit);
}

const selectPage = tenantStatement((db, values: Tenant & PageValues) => {
  const { partnerId, mode, limit } = values;
  return db
    .selectFrom(requireStartingAfter('deposit', values).as('k'))
    .leftJoin(
      newestRows({
        table: 'deposit',
        columns: DEPOSIT_COLUMNS,
        id: 'id',
        ...idRange('dep', values),
        limit,
        where: { partner_id: partnerId, mode },
      }).as('page'),
      (join) => join.on('page.partner_id', '=', partnerId).on('page.mode', '=', mode),
    )
    .select('k.known')
    .selectAll('page')
    .select([receivedBy('page').as('received_micro_usdt'), selectPayments('page').as('payments')])
    .orderBy('page.id', 'desc');
});

const one = tenantStatement((db, { partnerId, mode, depositId }: Tenant & { depositId: string }) =>
  db
    .selectFrom('deposit as d')
    .select(of('d', DEPOSIT_COLUMNS))
    .select([receivedBy('d').as('received_micro_usdt'), selectPayments('d').as('payments')])
    .where('d.partner_id', '=', partnerId)
    .where('d.mode', '=', mode)
    .where('d.id', '=', depositId),
);
