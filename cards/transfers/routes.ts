import { z } from 'zod';
import { type RespondingDependencies, respondToClaimed } from '../../api/http/claimed-work.ts';
import { claimOperation, keyedRequest, replay, replyAs, replyOnce } from '../../api/http/keyed.ts';
import {
  CREATED_FILTERS,
  Limit,
  listEnvelope,
  presentList,
  requestedPage,
  StartingAfter,
} from '../../api/http/list-envelope.ts';
import { declare, type RouteInput, resource } from '../../api/http/route.ts';
import { exampleList } from '../../api/openapi/examples.ts';
import { ApiError } from '../../domain/api-error.ts';
import {
  TRANSFERS,
  type TransferDeadlines,
  type TransferDirection,
  transferDeadlineMs,
} from '../../domain/transfer.ts';
import type { ReadList } from '../../platform/db/read-replica.ts';
import { transferWorkflowId } from '../../workflows/messages.ts';
import { PENDING_TOPUP, PENDING_WITHDRAWAL, TOPUP, WITHDRAWAL } from '../examples.ts';
import { requestedCardId, requireCard } from '../routes.ts';
import { beginTransfer, transferInTestMode } from './begin.ts';
import { acceptTransfer } from './end.ts';
import { readTransfer, readTransferPage } from './reads.ts';
import {
  TopUpRequest,
  TopUpResource,
  type TransferRequest,
  WithdrawalRequest,
  WithdrawalResource,
} from './resource.ts';

const createTopUp = declare({
  method: 'post',
  path: '/cards/:cardId/topups',
  scope: 'cards:write',
  operationId: 'topups.create',
  summary: 'Top up a card',
  description:
    'The card has to be active. The amount and its fees are debited from your balance. 201: the money is on the card. ' +
    '202: the top-up is pending; wait for `topup.succeeded` or `topup.failed`, or poll `GET /topups/{topupId}`.',
  idempotencyKey: 'required',
  liveIsWorkflow: true,
  query: z.strictObject({}),
  body: TopUpRequest,
  responses: { 201: TopUpResource, 202: TopUpResource },
  examples: { body: { amount: 2_500 }, 201: TOPUP, 202: PENDING_TOPUP },
  errors: [
    'insufficient_funds',
    'provider_declined',
    'card_not_found',
    'invalid_state',
    'idempotency_in_flight',
    'limit_exceeded',
    'idempotency_conflict',
  ],
});

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

const getTopUp = declare({
  method: 'get',
  path: '/topups/:topupId',
  scope: 'cards:read',
  operationId: 'topups.get',
  summary: 'Retrieve a top-up',
  description: 'The top-up as it is now. Poll this while it is `pending`.',
  query: z.strictObject({}),
  responses: { 200: TopUpResource },
  examples: { 200: TOPUP },
  errors: ['topup_not_found'],
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

const listTopUps = declare({
  method: 'get',
  path: '/cards/:cardId/topups',
  scope: 'cards:read',
  operationId: 'topups.list',
  summary: "List a card's top-ups",
  description: 'Newest first.',
  query: z.strictObject({ limit: Limit, starting_after: StartingAfter('topup'), ...CREATED_FILTERS }),
  responses: { 200: listEnvelope(TopUpResource) },
  examples: { 200: exampleList(TOPUP) },
  errors: ['card_not_found'],
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

export interface TransferDependencies extends RespondingDependencies, TransferDeadlines {
  /** Whether live mode has a card network. */
  liveNetworkConfigured: boolean;
  readList: ReadList;
}

export const topups = resource(
  { createTopUp, getTopUp, listTopUps },
  (dependencies: TransferDependencies) => ({
    createTopUp: (input) => createTransfer(dependencies, 'topup', input),
    getTopUp: async ({ caller, params }) => ({
      status: 200,
      body: await readTransfer(dependencies.orm, caller, 'topup', params.topupId ?? ''),
    }),
    async listTopUps({ caller, params, query }) {
      const page = { cardId: params.cardId ?? '', ...requestedPage(query) };
      const found = await dependencies.readList((orm) => readTransferPage(orm, caller, 'topup', page));
      return { status: 200, body: presentList(found, query.limit) };
    },
  }),
);

export const withdrawals = resource(
  { createWithdrawal, getWithdrawal, listWithdrawals },
  (dependencies: TransferDependencies) => ({
    createWithdrawal: (input) => createTransfer(dependencies, 'withdrawal', input),
    getWithdrawal: async ({ caller, params }) => ({
      status: 200,
      body: await readTransfer(dependencies.orm, caller, 'withdrawal', params.withdrawalId ?? ''),
    }),
    async listWithdrawals({ caller, params, query }) {
      const page = { cardId: params.cardId ?? '', ...requestedPage(query) };
      const found = await dependencies.readList((orm) => readTransferPage(orm, caller, 'withdrawal', page));
      return { status: 200, body: presentList(found, query.limit) };
    },
  }),
);

async function createTransfer(
  dependencies: TransferDependencies,
  direction: TransferDirection,
  input: RouteInput<object, TransferRequest>,
) {
  const { operation } = TRANSFERS[direction];
  const { partnerId, mode } = input.caller;
  if (mode === 'test') {
    const request = keyedRequest(operation, input, requestedCardId(input));
    const response = await transferInTestMode(dependencies, request, input.body);
    return replyOnce(response, dependencies.eventsWritten);
  }
  const { id: cardId } = await requireCard(dependencies.orm, input.caller, input.params.cardId ?? '');
  if (!dependencies.liveNetworkConfigured) {
    throw new ApiError('unavailable', {
      message: 'No card network is configured for live mode. Contact us.',
    });
  }
  const claim = await claimOperation(dependencies, keyedRequest(operation, input, cardId), input.body);
  if (claim.outcome === 'replay') return replay(claim);
  const { claimId, resourceId: transferId } = claim;
  input.log({ workflowId: transferWorkflowId(direction, transferId) });
  const { taskQueue } = dependencies;
  const deadlineMs = transferDeadlineMs(dependencies, direction);
  const workflow = { claimId, transferId, cardId, partnerId, mode, operation, taskQueue, deadlineMs };
  const response = await respondToClaimed(dependencies, workflow, {
    passTurn: input.passTurn,
    // If no worker has held the money in time, it is held here, so that every 202 has money behind it.
    async answer() {
      await beginTransfer(dependencies, claimId, direction);
      await acceptTransfer(dependencies, claimId);
    },
  });
  return replyAs(claimId, response);
}
