import { sql } from 'kysely';
import { z } from 'zod';
import { type RespondingDependencies, respondToClaimed } from '../../api/http/claimed-work.ts';
import { claimOperation, keyedRequest, replay, replyAs, replyOnce } from '../../api/http/keyed.ts';
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
  readCardCursor,
  requestedPage,
  StartingAfter,
} from '../../api/http/list-envelope.ts';
import { declare, resource } from '../../api/http/route.ts';
import { exampleList } from '../../api/openapi/examples.ts';
import { ApiError } from '../../domain/api-error.ts';
import { isId } from '../../domain/ids.ts';
import type { Tenant } from '../../domain/mode.ts';
import { of, WITHDRAWAL_COLUMNS } from '../../platform/db/columns.ts';
import { newestRows } from '../../platform/db/newest.ts';
import type { Orm } from '../../platform/db/orm.ts';
import type { ReadList } from '../../platform/db/read-replica.ts';
import { tenantStatement } from '../../platform/db/sql.ts';
import { withdrawFromCardWorkflowId } from '../../workflows/messages.ts';
import { PENDING_WITHDRAWAL, WITHDRAWAL } from '../examples.ts';
import { requestedCardId, requireCard } from '../routes.ts';
import { acceptWithdrawal } from './end-withdrawal.ts';
import { beginWithdrawal, withdrawInTestMode } from './withdraw.ts';
import {
  presentWithdrawal,
  WithdrawalRequest,
  WithdrawalResource,
  type WithdrawalRow,
} from './withdrawal-resource.ts';

const createWithdrawal = declare({
  method: 'post',
  path: '/cards/:cardId/withdrawals',
  scope: 'cards:write',
  operationId: 'withdrawals.create',
  summary: 'Withdraw from a card',
  description:
    'Moves money from an active or a frozen card back to your balance, without a fee. 201: the money is in your balance. ' +
    '202: the withdrawal is pending and the money is held on the card; wait for `withdrawal.succeeded` or ' +
    '`withdrawal.failed`, or poll `GET /withdrawals/{withdrawalId}`.',
  idempotencyKey: 'required',
  liveIsWorkflow: true,
  query: z.strictObject({}),
  body: WithdrawalRequest,
  responses: { 201: WithdrawalResource, 202: WithdrawalResource },
  examples: { body: { amount: 2_000 }, 201: WITHDRAWAL, 202: PENDING_WITHDRAWAL },
  errors: [
    'insufficient_card_balance',
    'provider_declined',
    'card_not_found',
    'invalid_state',
    'idempotency_in_flight',
    'idempotency_conflict',
  ],
});

const getWithdrawal = declare({
  method: 'get',
  path: '/withdrawals/:withdrawalId',
  scope: 'cards:read',
  operationId: 'withdrawals.get',
  summary: 'Retrieve a withdrawal',
  description: 'The withdrawal as it is now. Poll this while it is `pending`.',
  query: z.strictObject({}),
  responses: { 200: WithdrawalResource },
  examples: { 200: WITHDRAWAL },
  errors: ['withdrawal_not_found'],
});

const listWithdrawals = declare({
  method: 'get',
  path: '/cards/:cardId/withdrawals',
  scope: 'cards:read',
  operationId: 'withdrawals.list',
  summary: "List a card's withdrawals",
  description: 'Newest first.',
  query: z.strictObject({ limit: Limit, starting_after: StartingAfter('wdr'), ...CREATED_FILTERS }),
  responses: { 200: listEnvelope(WithdrawalResource) },
  examples: { 200: exampleList(WITHDRAWAL) },
  errors: ['card_not_found'],
});

export interface WithdrawalDependencies extends RespondingDependencies {
  /** Whether live mode has a card network. */
  liveNetworkConfigured: boolean;
  readList: ReadList;
  withdrawalDeadlineMs: number;
}

export const withdrawals = resource(
  { createWithdrawal, getWithdrawal, listWithdrawals },
  (dependencies: WithdrawalDependencies) => ({
    async createWithdrawal(input) {
      const { partnerId, mode } = input.caller;
      if (mode === 'test') {
        const request = keyedRequest('withdraw_from_card', input, requestedCardId(input));
        const response = await withdrawInTestMode(dependencies, request, input.body);
        return replyOnce(response, dependencies.eventsWritten);
      }
      const { id: cardId } = await requireCard(dependencies.orm, input.caller, input.params.cardId ?? '');
      if (!dependencies.liveNetworkConfigured) {
        throw new ApiError('unavailable', {
          message: 'No card network is configured for live mode. Contact us.',
        });
      }
      const claim = await claimOperation(
        dependencies,
        keyedRequest('withdraw_from_card', input, cardId),
        input.body,
      );
      if (claim.outcome === 'replay') return replay(claim);
      const { claimId, resourceId: withdrawalId } = claim;
      input.log({ workflowId: withdrawFromCardWorkflowId(withdrawalId) });
      const { taskQueue, withdrawalDeadlineMs: deadlineMs } = dependencies;
      const about = { claimId, withdrawalId, cardId, partnerId, mode };
      const workflow = { ...about, operation: 'withdraw_from_card', taskQueue, deadlineMs } as const;
      const response = await respondToClaimed(dependencies, workflow, {
        passTurn: input.passTurn,
        // If no worker has held the money in time, it is held here, so that every 202 has money behind it.
        async answer() {
          await beginWithdrawal(dependencies, claimId);
          await acceptWithdrawal(dependencies, claimId);
        },
      });
      return replyAs(claimId, response);
    },

    getWithdrawal: async ({ caller, params }) => ({
      status: 200,
      body: await readWithdrawal(dependencies.orm, caller, params.withdrawalId ?? ''),
    }),

    async listWithdrawals({ caller, params, query }) {
      const cardId = params.cardId ?? '';
      const found = await dependencies.readList((orm) =>
        readWithdrawalPage(orm, caller, { cardId, ...requestedPage(query) }),
      );
      return { status: 200, body: presentList(found, query.limit) };
    },
  }),
);

interface ReadRow extends WithdrawalRow {
  balance_cents: string | null;
}

/** @throws ApiError `withdrawal_not_found`, for an id of another shape as well. */
async function readWithdrawal(orm: Orm, tenant: Tenant, withdrawalId: string): Promise<WithdrawalResource> {
  const [row] = isId('wdr', withdrawalId) ? await one(orm.em.fork(), tenant, { withdrawalId }) : [];
  if (row === undefined) throw new ApiError('withdrawal_not_found');
  return present(row);
}

interface WithdrawalPage extends PageRequest {
  cardId: string;
}

/**
 * Up to `limit` + 1 withdrawals of a card, newest first, by key.
 * @throws ApiError `card_not_found`; `validation_failed` if `startingAfter` is not a withdrawal of the card.
 */
export async function readWithdrawalPage(
  orm: Orm,
  tenant: Tenant,
  page: WithdrawalPage,
): Promise<WithdrawalResource[]> {
  const { cardId } = page;
  const rows = isId('card', cardId)
    ? await selectPage(orm.em.fork(), tenant, { ...pageValues(page), cardId })
    : [];
  if (rows.length === 0) throw new ApiError('card_not_found');
  return pageRows<ReadRow>(rows, 'a withdrawal of this card').map(present);
}

const one = tenantStatement((db, { partnerId, mode, withdrawalId }: Tenant & { withdrawalId: string }) =>
  db
    .selectFrom('withdrawal as w')
    .leftJoin('ledger.account as a', (join) =>
      join
        .onRef('a.card_id', '=', 'w.card_id')
        .onRef('a.partner_id', '=', 'w.partner_id')
        .onRef('a.mode', '=', 'w.mode'),
    )
    .select(of('w', WITHDRAWAL_COLUMNS))
    .select('a.posted as balance_cents')
    .where('w.partner_id', '=', partnerId)
    .where('w.mode', '=', mode)
    .where('w.id', '=', withdrawalId),
);

// One row for each withdrawal of the page, with the card; if the page is empty, one row with only the card.
const selectPage = tenantStatement((db, values: Tenant & PageValues & { cardId: string }) => {
  const { partnerId, mode, cardId, limit } = values;
  return db
    .selectFrom('card as c')
    .leftJoinLateral(
      newestRows({
        table: 'withdrawal',
        columns: WITHDRAWAL_COLUMNS,
        id: 'id',
        ...idRange('wdr', values),
        limit,
        where: { card_id: sql.ref('c.id') },
      }).as('page'),
      (join) => join.onTrue(),
    )
    .leftJoin('ledger.account as a', (join) =>
      join
        .onRef('a.card_id', '=', 'c.id')
        .onRef('a.partner_id', '=', 'c.partner_id')
        .onRef('a.mode', '=', 'c.mode'),
    )
    .select(readCardCursor('withdrawal', values))
    .selectAll('page')
    .select('a.posted as balance_cents')
    .where('c.partner_id', '=', partnerId)
    .where('c.mode', '=', mode)
    .where('c.id', '=', cardId)
    .orderBy('page.id', 'desc');
});

function present(row: ReadRow): WithdrawalResource {
  return presentWithdrawal(row, Number(row.balance_cents ?? 0));
}
