import { z } from 'zod';
import { keyedRequest, replyOnce } from '../api/http/keyed.ts';
import { accountPage, declareList, type PageValues, pageRows, pageValues } from '../api/http/list.ts';
import { type PageRequest, presentList } from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import { TestPayment } from '../domain/deposit.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { DEPOSIT_COLUMNS, receivedBy, selectPayments } from '../platform/db/columns.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { tenantStatement } from '../platform/db/sql.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { watchDepositWorkflowId } from '../workflows/messages.ts';
import { CONFIRMED_DEPOSIT, DEPOSIT, RESOLVED_TEST_DEPOSIT, TEST_DEPOSIT } from './examples.ts';
import { type DepositTerms, openDeposit } from './open.ts';
import { selectOwnDeposit } from './reads.ts';
import { resolveTestDeposit } from './resolve.ts';
import { DepositRequest, DepositResource, type DepositRow, presentDeposit } from './resource.ts';
import { openTestDeposit } from './test-deposits.ts';

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
  body: DepositRequest,
  responses: { 201: DepositResource },
  examples: { body: { amount: 250_000 }, 201: DEPOSIT },
  errors: ['deposits_not_configured', 'limit_exceeded'],
});

const listDeposits = declareList({
  path: '/funding/deposits',
  scope: 'balance:read',
  operationId: 'deposits.list',
  summary: 'List deposits',
  description:
    'Every deposit address you created, with its status and the payments it received, newest first. In test mode, the deposits of `POST /test/deposits`.',
  idPrefix: 'dep',
  item: DepositResource,
  example: CONFIRMED_DEPOSIT,
});

const getDeposit = declare({
  method: 'get',
  path: '/funding/deposits/:depositId',
  scope: 'balance:read',
  operationId: 'deposits.get',
  summary: 'Retrieve a deposit',
  description: 'The address, its status, and the payments it received.',
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
      const deposits = await dependencies.readList((orm) => readDepositPage(orm, caller, query));
      return { status: 200, body: presentList(deposits, query.limit) };
    },

    async getDeposit({ caller, params: { depositId = '' } }) {
      const [row] = isId('dep', depositId)
        ? await selectOwnDeposit(dependencies.orm.em.fork(), caller, { depositId })
        : [];
      if (row === undefined) throw new ApiError('deposit_not_found');
      return { status: 200, body: presentDeposit(row) };
    },
  }),
);

/**
 * Up to `limit` + 1 deposits, newest first, by key.
 * @throws ApiError `validation_failed` if `starting_after` is not a deposit of the tenant.
 */
export async function readDepositPage(
  orm: Orm,
  tenant: Tenant,
  page: PageRequest,
): Promise<DepositResource[]> {
  const rows = await selectPage(orm.em.fork(), tenant, pageValues(page));
  return pageRows<DepositRow>(rows, 'a deposit').map(presentDeposit);
}

const DEPOSITS = { table: 'deposit', columns: DEPOSIT_COLUMNS, idPrefix: 'dep' } as const;

const selectPage = tenantStatement((db, values: Tenant & PageValues) =>
  accountPage(db, values, DEPOSITS, {}).select([
    receivedBy('page').as('received_micro_usdt'),
    selectPayments('page').as('payments'),
  ]),
);

const CreateTestDepositRequest = z
  .strictObject({ amount: DepositRequest.shape.amount, payment: TestPayment.optional() })
  .meta({ id: 'CreateTestDepositRequest', description: 'How much to deposit, and what payment arrives.' });

const ResolveTestDepositRequest = z
  .strictObject({
    outcome: z
      .enum(['credit', 'returned'], { error: 'must be credit or returned' })
      .describe(
        '`credit`: what arrived is credited, rounded down to a cent. `returned`: nothing is credited.',
      ),
  })
  .meta({ id: 'ResolveTestDepositRequest', description: 'What becomes of what is in review.' });

const createTestDeposit = declare({
  method: 'post',
  path: '/test/deposits',
  operationId: 'testHelpers.createDeposit',
  summary: 'Create a test deposit',
  description:
    'Creates a deposit whose payment arrives by itself within 3 seconds, with the events and the changes of your test balance ' +
    'that a deposit has in live mode.',
  mode: 'test',
  scope: 'test:write',
  idempotencyKey: 'accepted',
  body: CreateTestDepositRequest,
  responses: { 201: DepositResource },
  examples: { body: { amount: 250_000, payment: 'exact' }, 201: TEST_DEPOSIT },
  errors: ['limit_exceeded'],
});

const resolveDeposit = declare({
  method: 'post',
  path: '/test/deposits/:depositId/resolve',
  operationId: 'testHelpers.resolveDeposit',
  summary: 'Resolve a test deposit',
  description:
    'Settles what is in review of a test deposit. For a live deposit, one of us does this after talking to you.',
  mode: 'test',
  scope: 'test:write',
  idempotencyKey: 'accepted',
  body: ResolveTestDepositRequest,
  responses: { 200: DepositResource },
  examples: { body: { outcome: 'credit' }, 200: RESOLVED_TEST_DEPOSIT },
  errors: ['deposit_not_found', 'invalid_state'],
});

export interface TestDepositDependencies extends CommandContext {
  /** Called after a commit, so that events are sent without delay. */
  eventsWritten(): void;
}

export const testDeposits = resource(
  { createTestDeposit, resolveDeposit },
  (dependencies: TestDepositDependencies) => ({
    async createTestDeposit(input) {
      const { amount, payment = 'exact' } = input.body;
      const request = keyedRequest('create_test_deposit', input, null);
      return replyOnce(await openTestDeposit(dependencies, request, { amountCents: amount, payment }));
    },

    async resolveDeposit(input) {
      const { depositId = '' } = input.params;
      if (!isId('dep', depositId)) throw new ApiError('deposit_not_found');
      const request = keyedRequest('resolve_test_deposit', input, null);
      const outcome = input.body.outcome === 'credit' ? 'credited' : 'returned';
      const response = await resolveTestDeposit(dependencies, request, depositId, outcome);
      return replyOnce(response, dependencies.eventsWritten);
    },
  }),
);
