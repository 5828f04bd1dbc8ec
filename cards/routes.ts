import { type RawBuilder, sql } from 'kysely';
import { type RespondingDependencies, respondToClaimed } from '../api/http/claimed-work.ts';
import { claimOperation, keyedRequest, replay, replyAs, replyOnce } from '../api/http/keyed.ts';
import {
  accountKey,
  declareList,
  newestListed,
  type PageValues,
  pageOf,
  pageRows,
  pageValues,
} from '../api/http/list.ts';
import { type PageRequest, readLongPage } from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import { CardStatus } from '../domain/card-status.ts';
import type { ClaimOperation } from '../domain/claim-operation.ts';
import { Line } from '../domain/fields.ts';
import { isId } from '../domain/ids.ts';
import type { Mode, Tenant } from '../domain/mode.ts';
import { CARD_COLUMNS, of } from '../platform/db/columns.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { tenantStatement } from '../platform/db/sql.ts';
import { type Claim, claimUnderKey, type KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { issueCardWorkflowId } from '../workflows/messages.ts';
import { acceptIssuance } from './end-issuance.ts';
import { CARD, CREATE_CARD, PENDING_CARD, UPDATE_CARD, UPDATED_CARD } from './examples.ts';
import { beginIssuance, type FundingContext, issueInTestMode, type TestIssuanceContext } from './issue.ts';
import { CardResource, type CardRow, CreateCardRequest, presentCard, UpdateCardRequest } from './resource.ts';
import { updateCard as changeCard } from './update.ts';

const createCard = declare({
  method: 'post',
  path: '/cards',
  scope: 'cards:write',
  operationId: 'cards.create',
  summary: 'Create a card',
  description:
    'Issues a card and funds it. The amount and its fees are debited from your balance; see `POST /quotes`. 201: the ' +
    'card is active. 202: it is being issued; wait for `card.issued` or `card.issue_failed`, or poll ' +
    '`GET /cards/{cardId}`.',
  idempotencyKey: 'required',
  liveIsWorkflow: true,
  body: CreateCardRequest,
  responses: { 201: CardResource, 202: CardResource },
  examples: { body: CREATE_CARD, 201: CARD, 202: PENDING_CARD },
  errors: [
    'insufficient_funds',
    'provider_declined',
    'external_ref_taken',
    'idempotency_in_flight',
    'no_product_configured',
    'limit_exceeded',
    'idempotency_conflict',
    'product_not_allowed',
  ],
});

const updateCard = declare({
  method: 'patch',
  path: '/cards/:cardId',
  scope: 'cards:write',
  operationId: 'cards.update',
  summary: 'Change a card',
  description:
    'Changes the fields that you send. Null removes a field. In `metadata`, null removes a key, and keys that you leave out ' +
    'stay. `spending_controls` are replaced whole. The card can have any status but `failed`. If anything changes, an event `card.updated` tells of it.',
  idempotencyKey: 'accepted',
  body: UpdateCardRequest,
  responses: { 200: CardResource },
  examples: { body: UPDATE_CARD, 200: UPDATED_CARD },
  errors: ['card_not_found', 'invalid_state'],
});

const getCard = declare({
  method: 'get',
  path: '/cards/:cardId',
  scope: 'cards:read',
  operationId: 'cards.get',
  summary: 'Retrieve a card',
  description: 'The card as it is now. Poll this while the card is `funding_pending`.',
  responses: { 200: CardResource },
  examples: { 200: CARD },
  errors: ['card_not_found'],
});

const listCards = declareList({
  path: '/cards',
  scope: 'cards:read',
  operationId: 'cards.list',
  summary: 'List cards',
  description: 'Newest first.',
  idPrefix: 'card',
  item: CardResource,
  example: CARD,
  filters: {
    external_ref: Line(255).optional().describe('Only the card with this `external_ref`.'),
    status: CardStatus.optional().describe('Only cards with this status.'),
  },
});

export interface CardDependencies extends RespondingDependencies, FundingContext, TestIssuanceContext {
  readList: ReadList;
  issuanceDeadlineMs: number;
  /**
   * Whether live mode's network asks us before it approves. Without that, nothing would keep to a live card's
   * spending controls.
   */
  spendingControlsEnforced: boolean;
}

export const cards = resource(
  { createCard, updateCard, getCard, listCards },
  (dependencies: CardDependencies) => ({
    async createCard(input) {
      const { partnerId, mode } = input.caller;
      const request = keyedRequest('create_card', input, null);
      if (mode === 'test') {
        const response = await issueInTestMode(dependencies, request, input.body);
        return replyOnce(response, dependencies.eventsWritten);
      }
      requireEnforced(dependencies, mode, input.body);
      const claim = await claimOperation(dependencies, request, input.body);
      if (claim.outcome === 'replay') return replay(claim);
      const { claimId, resourceId: cardId } = claim;
      input.log({ workflowId: issueCardWorkflowId(cardId) });
      const { taskQueue, issuanceDeadlineMs: deadlineMs } = dependencies;
      const workflow = {
        operation: 'create_card',
        claimId,
        cardId,
        partnerId,
        mode,
        taskQueue,
        deadlineMs,
      } as const;
      const response = await respondToClaimed(dependencies, workflow, {
        passTurn: input.passTurn,
        // If no worker has held the money in time, it is held here, so that every 202 has money behind it.
        async answer() {
          await beginIssuance(dependencies, claimId);
          await acceptIssuance(dependencies, claimId);
        },
      });
      return replyAs(claimId, response);
    },

    async updateCard(input) {
      requireEnforced(dependencies, input.caller.mode, input.body);
      const cardId = requestedCardId(input);
      const request = { ...keyedRequest('update_card', input, cardId), cardId };
      return replyOnce(await changeCard(dependencies, request, input.body), dependencies.eventsWritten);
    },

    getCard: async ({ caller, params }) => ({
      status: 200,
      body: await requireCard(dependencies.orm, caller, params.cardId ?? ''),
    }),

    async listCards({ caller, query }) {
      const read = (orm: Orm) => readLongPage(query, (part) => readCardPage(orm, caller, part));
      return { status: 200, body: await dependencies.readList(read) };
    },
  }),
);

/** @throws ApiError `validation_failed` if a live card would have spending controls that nothing keeps to */
function requireEnforced(
  { spendingControlsEnforced }: CardDependencies,
  mode: Mode,
  { spending_controls: controls }: CreateCardRequest | UpdateCardRequest,
): void {
  if (mode === 'test' || spendingControlsEnforced || controls == null) return;
  throw ApiError.ofField(
    'spending_controls',
    'spending_controls can not be set on live cards: the card network approves without asking us. Leave them out, or contact us.',
  );
}

interface ReadRow extends CardRow {
  balance_cents: string | null;
  held_cents: string | null;
}

/**
 * The card's id in a path. @throws ApiError `card_not_found` if it has another shape, since no such card can
 * exist.
 */
export function requestedCardId({ params: { cardId = '' } }: { params: Record<string, string> }): string {
  if (!isId('card', cardId)) throw new ApiError('card_not_found');
  return cardId;
}

/** @throws ApiError `card_not_found`, for an id of another shape as well. */
export async function requireCard(orm: Orm, tenant: Tenant, cardId: string): Promise<CardResource> {
  const [row] = isId('card', cardId) ? await one(orm.em.fork(), tenant, { cardId }) : [];
  if (row === undefined) throw new ApiError('card_not_found');
  return present(row);
}

/**
 * Claims the key of a live request about a card, whose work is a workflow. A key that has a claim already
 * gets its response, whatever has become of the card or of the card network.
 * @param body as claimOperation
 * @throws ApiError `card_not_found`, `unavailable` (no card network is configured), `idempotency_in_flight`,
 * `idempotency_conflict`
 */
export async function claimAboutCard<Operation extends ClaimOperation>(
  context: CommandContext & Pick<FundingContext, 'liveNetworkConfigured'>,
  request: KeyedRequest<Operation> & { cardId: string },
  body: unknown,
): Promise<Claim<Operation>> {
  try {
    await requireCard(context.orm, request, request.cardId);
    if (!context.liveNetworkConfigured) {
      throw new ApiError('unavailable', {
        message: 'No card network is configured for live mode. Contact us.',
      });
    }
  } catch (refusal) {
    if (!(await isClaimed(context.orm, request))) throw refusal;
  }
  return claimOperation(context, request, body);
}

async function isClaimed(orm: Orm, request: KeyedRequest): Promise<boolean> {
  if (request.key === null) return false;
  return (await claimUnderKey(orm.em.fork(), request, { key: request.key })).length > 0;
}

interface CardPage extends PageRequest {
  external_ref?: string | undefined;
  status?: CardStatus | undefined;
}

/**
 * Up to `limit` + 1 cards, newest first, by key.
 * @throws ApiError `validation_failed` if `starting_after` is not a card of the tenant.
 */
export async function readCardPage(orm: Orm, tenant: Tenant, page: CardPage): Promise<CardResource[]> {
  const { external_ref: externalRef, status } = page;
  const ofStatus = status === undefined ? selectPage : selectPageByStatus;
  const read = externalRef === undefined ? ofStatus : selectPageByRef;
  const statuses = status === undefined ? CardStatus.options : [status];
  const values = { ...pageValues(page), externalRef: externalRef ?? '', statuses, status };
  const rows = await read(orm.em.fork(), tenant, values);
  return pageRows<ReadRow>(rows, 'a card').map(present);
}

const one = tenantStatement((db, { partnerId, mode, cardId }: Tenant & { cardId: string }) =>
  db
    .selectFrom('card as c')
    .leftJoin('ledger.account as a', (join) =>
      join
        .onRef('a.card_id', '=', 'c.id')
        .onRef('a.partner_id', '=', 'c.partner_id')
        .onRef('a.mode', '=', 'c.mode'),
    )
    .select(of('c', CARD_COLUMNS))
    .select(['a.posted as balance_cents', 'a.held as held_cents'])
    .where('c.partner_id', '=', partnerId)
    .where('c.mode', '=', mode)
    .where('c.id', '=', cardId),
);

type CardPageValues = Tenant &
  PageValues & {
    externalRef: string;
    statuses: readonly CardStatus[];
    status: CardStatus | undefined;
  };

const CARDS = { table: 'card', columns: CARD_COLUMNS, idPrefix: 'card' } as const;

const pageStatement = (newest: (values: CardPageValues) => RawBuilder<CardRow>) =>
  tenantStatement((db, values: CardPageValues) =>
    pageOf(db, values, 'card', newest(values))
      // LIMIT keeps the planner from joining all accounts to find one card's, however wrong its estimates
      // are.
      .leftJoinLateral(
        (eb) =>
          eb
            .selectFrom('ledger.account')
            .select(['posted', 'held'])
            .whereRef('card_id', '=', 'page.id')
            .where('partner_id', '=', values.partnerId)
            .where('mode', '=', values.mode)
            .limit(sql.lit(1))
            .as('a'),
        (join) => join.onTrue(),
      )
      .select(['a.posted as balance_cents', 'a.held as held_cents']),
  );

const selectPage = pageStatement((values) => newestListed(CARDS, values, accountKey(values)));

const selectPageByStatus = pageStatement((values) =>
  newestListed(CARDS, values, { ...accountKey(values), status: values.status }),
);

// Failed cards can share a reference, so this reads a page of each status through the index on both, and
// keeps the newest.
const selectPageByRef = pageStatement((values) => {
  const { externalRef, statuses, limit } = values;
  const ofStatus = newestListed(CARDS, values, {
    ...accountKey(values),
    external_ref: externalRef,
    status: sql.ref('wanted.status'),
  });
  return sql`(select one.* from unnest(${statuses}::text[]) wanted (status) cross join lateral ${ofStatus} one
    order by one.id desc limit ${limit})`;
});

function present(row: ReadRow): CardResource {
  const { balance_cents: balance, held_cents: held } = row;
  return presentCard(row, { balanceCents: Number(balance ?? 0), heldCents: Number(held ?? 0) });
}
