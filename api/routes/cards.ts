import { z } from 'zod';
import { issueInTestMode } from '../../commands/funding/test-operations.ts';
import type { Orm } from '../../db/orm.ts';
import { CardStatus } from '../../domain/card-status.ts';
import { Line } from '../../domain/fields.ts';
import { siblingId } from '../../domain/ids.ts';
import { CardResource, CreateCardRequest } from '../../resources/card.ts';
import { issueCardWorkflowId } from '../../workflows/messages.ts';
import { claimOperation, keyedRequest, replyOnce } from '../http/claim-operation.ts';
import { Limit, listOf, presentList, StartingAfter } from '../http/list-envelope.ts';
import { replay } from '../http/replay.ts';
import { route } from '../http/route.ts';
import { type IssuingDependencies, issueCard } from '../issue-card.ts';
import * as EXAMPLES from '../openapi/examples.ts';
import { readCard, readCardPage } from '../read-cards.ts';

export const createCard = (dependencies: IssuingDependencies) =>
  route({
    method: 'post',
    path: '/cards',
    operationId: 'cards.create',
    summary: 'Create a card',
    description:
      'Issues a card and funds it. The amount and its fees are debited from your balance; see `POST /quotes`. 201: the ' +
      'card is active. 202: it is being issued; wait for `card.issued` or `card.issue_failed`, or poll ' +
      '`GET /cards/{cardId}`.',
    idempotencyKey: 'required',
    liveIsWorkflow: true,
    query: z.strictObject({}),
    body: CreateCardRequest,
    responses: { 201: CardResource, 202: CardResource },
    examples: {
      body: EXAMPLES.CREATE_CARD,
      201: EXAMPLES.CARD,
      202: EXAMPLES.PENDING_CARD,
    },
    errors: [
      ...([
        'insufficient_funds',
        'provider_declined',
        'external_ref_taken',
        'idempotency_in_flight',
      ] as const),
      ...([
        'no_product_configured',
        'limit_exceeded',
        'idempotency_conflict',
        'product_not_allowed',
      ] as const),
    ],
    async handle(input) {
      const { partnerId, mode } = input.caller;
      const request = keyedRequest('create_card', input, null);
      if (mode === 'test') {
        const answer = await issueInTestMode(dependencies, request, input.body);
        return replyOnce(answer, dependencies.eventsWritten);
      }
      const claim = await claimOperation(dependencies, request, input.body);
      if (claim.outcome === 'replay') return replay(claim.response);
      const { claimId } = claim;
      input.log({ workflowId: issueCardWorkflowId(siblingId('card', claimId)) });
      return issueCard(dependencies, { claimId, partnerId, mode }, input.passTurn);
    },
  });

export const getCard = ({ orm }: { orm: Orm }) =>
  route({
    method: 'get',
    path: '/cards/:cardId',
    operationId: 'cards.get',
    summary: 'Retrieve a card',
    description: 'The card as it is now. Poll this while the card is `funding_pending`.',
    query: z.strictObject({}),
    responses: { 200: CardResource },
    examples: { 200: EXAMPLES.CARD },
    errors: ['card_not_found'],
    handle: async ({ caller, params }) => ({
      status: 200,
      body: await readCard(orm, caller, params.cardId ?? ''),
    }),
  });

export const listCards = ({ orm }: { orm: Orm }) =>
  route({
    method: 'get',
    path: '/cards',
    operationId: 'cards.list',
    summary: 'List cards',
    description: 'Newest first.',
    query: z.strictObject({
      limit: Limit,
      starting_after: StartingAfter('card'),
      external_ref: Line(255).optional().describe('Only the card with this `external_ref`.'),
      status: CardStatus.optional().describe('Only cards with this status.'),
    }),
    responses: { 200: listOf(CardResource) },
    examples: { 200: EXAMPLES.listOf(EXAMPLES.CARD) },
    async handle({ caller, query }) {
      const { limit, starting_after: startingAfter, external_ref: externalRef, status } = query;
      const cards = await readCardPage(orm, caller, { limit, startingAfter, externalRef, status });
      return { status: 200, body: presentList(cards, limit) };
    },
  });
