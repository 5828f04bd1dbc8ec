import { sql } from 'kysely';
import { type RespondingDependencies, respondToClaimed } from '../../api/http/claimed-work.ts';
import { keyedRequest, replay, replyAs, replyOnce } from '../../api/http/keyed.ts';
import { type CardPageValues, cardPage, declareList, pageRows, pageValues } from '../../api/http/list.ts';
import { type PageRequest, presentList } from '../../api/http/list-envelope.ts';
import { declare, type RouteInput, resource } from '../../api/http/route.ts';
import { ApiError } from '../../domain/api-error.ts';
import { isId } from '../../domain/ids.ts';
import type { Tenant } from '../../domain/mode.ts';
import {
  TRANSFERS,
  type TransferDeadlines,
  type TransferDirection,
  transferDeadlineMs,
} from '../../domain/transfer.ts';
import { of, TRANSFER_COLUMNS } from '../../platform/db/columns.ts';
import type { Orm } from '../../platform/db/orm.ts';
import type { ReadList } from '../../platform/db/read-replica.ts';
import { tenantStatement } from '../../platform/db/sql.ts';
import { transferWorkflowId } from '../../workflows/messages.ts';
import { PENDING_TOPUP, PENDING_WITHDRAWAL, TOPUP, WITHDRAWAL } from '../examples.ts';
import { claimAboutCard, requestedCardId } from '../routes.ts';
import { beginTransfer, transferInTestMode } from './begin.ts';
import { acceptTransfer } from './end.ts';
import {
  presentTransfer,
  TopUpRequest,
  TopUpResource,
  type TransferRequest,
  type TransferResources,
  type TransferRow,
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
  body: TopUpRequest,
  responses: { 201: TopUpResource, 202: TopUpResource },
  examples: { body: { amount: 2_500 }, 201: TOPUP, 202: PENDING_TOPUP },
  errors: ['insufficient_funds', 'provider_declined', 'card_not_found', 'invalid_state', 'limit_exceeded'],
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
  body: WithdrawalRequest,
  responses: { 201: WithdrawalResource, 202: WithdrawalResource },
  examples: { body: { amount: 2_000 }, 201: WITHDRAWAL, 202: PENDING_WITHDRAWAL },
  errors: ['insufficient_card_balance', 'provider_declined', 'card_not_found', 'invalid_state'],
});

const SHOWN = {
  topup: { create: createTopUp, item: TopUpResource, example: TOPUP },
  withdrawal: { create: createWithdrawal, item: WithdrawalResource, example: WITHDRAWAL },
} as const;

export interface TransferDependencies extends RespondingDependencies, TransferDeadlines {
  /** Whether live mode has a card network. */
  liveNetworkConfigured: boolean;
  readList: ReadList;
}

function transfersOf(direction: TransferDirection) {
  const { noun, idPrefix } = TRANSFERS[direction];
  const { create, item, example } = SHOWN[direction];
  const get = declare({
    method: 'get',
    path: `/${direction}s/:${direction}Id`,
    scope: 'cards:read',
    operationId: `${direction}s.get`,
    summary: `Retrieve a ${noun}`,
    description: `The ${noun} as it is now. Poll this while it is \`pending\`.`,
    responses: { 200: item },
    examples: { 200: example },
    errors: [`${direction}_not_found`],
  });
  const list = declareList({
    path: `/cards/:cardId/${direction}s`,
    scope: 'cards:read',
    operationId: `${direction}s.list`,
    summary: `List a card's ${noun}s`,
    description: 'Newest first.',
    idPrefix,
    item,
    example,
    errors: ['card_not_found'],
  });
  return resource({ create, get, list }, (dependencies: TransferDependencies) => ({
    create: (input) => createTransfer(dependencies, direction, input),
    get: async ({ caller, params }) => ({
      status: 200,
      body: await readTransfer(dependencies.orm, caller, direction, params[`${direction}Id`] ?? ''),
    }),
    async list({ caller, params, query }) {
      const page = { cardId: requestedCardId({ params }), ...query };
      const found = await dependencies.readList((orm) => readTransferPage(orm, caller, direction, page));
      return { status: 200, body: presentList(found, query.limit) };
    },
  }));
}

export const topups = transfersOf('topup');
export const withdrawals = transfersOf('withdrawal');

async function createTransfer(
  dependencies: TransferDependencies,
  direction: TransferDirection,
  input: RouteInput<object, TransferRequest>,
) {
  const { operation } = TRANSFERS[direction];
  const { partnerId, mode } = input.caller;
  const cardId = requestedCardId(input);
  const request = { ...keyedRequest(operation, input, cardId), cardId };
  if (mode === 'test') {
    const response = await transferInTestMode(dependencies, request, input.body);
    return replyOnce(response, dependencies.eventsWritten);
  }
  const claim = await claimAboutCard(dependencies, request, input.body);
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

interface ReadRow extends TransferRow {
  balance_cents: string | null;
}

/** @throws ApiError `topup_not_found` or `withdrawal_not_found`, for an id of another shape as well. */
async function readTransfer<Direction extends TransferDirection>(
  orm: Orm,
  tenant: Tenant,
  direction: Direction,
  transferId: string,
): Promise<TransferResources[Direction]> {
  const isOne = isId(TRANSFERS[direction].idPrefix, transferId);
  const [row] = isOne ? await selectOne(orm.em.fork(), tenant, { transferId }) : [];
  if (row === undefined) throw new ApiError(`${direction}_not_found`);
  return present(row, direction);
}

/**
 * Up to `limit` + 1 transfers of a card, newest first, by key.
 * @throws ApiError `card_not_found`; `validation_failed` if `starting_after` is not a transfer of the card.
 */
export async function readTransferPage<Direction extends TransferDirection>(
  orm: Orm,
  tenant: Tenant,
  direction: Direction,
  { cardId, ...page }: PageRequest & { cardId: string },
): Promise<TransferResources[Direction][]> {
  const rows = await SELECT_PAGE[direction](orm.em.fork(), tenant, { ...pageValues(page), cardId });
  const what = `a ${TRANSFERS[direction].noun} of this card`;
  return pageRows<ReadRow>(rows, what).map((row) => present(row, direction));
}

const selectOne = tenantStatement((db, { partnerId, mode, transferId }: Tenant & { transferId: string }) =>
  db
    .selectFrom('card_transfer as t')
    .leftJoin('ledger.account as a', (join) =>
      join
        .onRef('a.card_id', '=', 't.card_id')
        .onRef('a.partner_id', '=', 't.partner_id')
        .onRef('a.mode', '=', 't.mode'),
    )
    .select(of('t', TRANSFER_COLUMNS))
    .select('a.posted as balance_cents')
    .where('t.partner_id', '=', partnerId)
    .where('t.mode', '=', mode)
    .where('t.id', '=', transferId),
);

const selectPage = (direction: TransferDirection) =>
  tenantStatement((db, values: CardPageValues) =>
    cardPage(
      db,
      values,
      { table: 'card_transfer', columns: TRANSFER_COLUMNS, idPrefix: TRANSFERS[direction].idPrefix },
      { direction: sql.lit(direction) },
    )
      .leftJoin('ledger.account as a', (join) =>
        join
          .onRef('a.card_id', '=', 'c.id')
          .onRef('a.partner_id', '=', 'c.partner_id')
          .onRef('a.mode', '=', 'c.mode'),
      )
      .select('a.posted as balance_cents'),
  );

const SELECT_PAGE = { topup: selectPage('topup'), withdrawal: selectPage('withdrawal') };

const present = <Direction extends TransferDirection>(row: ReadRow, direction: Direction) =>
  presentTransfer({ ...row, direction }, Number(row.balance_cents ?? 0));
