import { z } from 'zod';
import { topUpInTestMode } from '../../commands/funding/test-operations.ts';
import type { Orm } from '../../db/orm.ts';
import { ApiError } from '../../domain/api-error.ts';
import { siblingId } from '../../domain/ids.ts';
import { TopUpRequest, TopUpResource } from '../../resources/topup.ts';
import { topUpCardWorkflowId } from '../../workflows/messages.ts';
import { claimOperation, keyedRequest, replyOnce } from '../http/claim-operation.ts';
import { Limit, listOf, presentList, StartingAfter } from '../http/list-envelope.ts';
import { replay } from '../http/replay.ts';
import { route } from '../http/route.ts';
import * as EXAMPLES from '../openapi/examples.ts';
import { cardIdOf, readCard } from '../read-cards.ts';
import { readTopUp, readTopUpPage } from '../read-topups.ts';
import { type TopUpDependencies, topUpCard } from '../top-up-card.ts';

export const createTopUp = (dependencies: TopUpDependencies) =>
  route({
    method: 'post',
    path: '/cards/:cardId/topups',
    operationId: 'topups.create',
    summary: 'Top up a card',
    description:
      'The card has to be active. The amount and its fees are debited from your balance. 201: the money is on the card. ' +
      '202: the card is being loaded; wait for `topup.succeeded` or `topup.failed`, or poll `GET /topups/{topupId}`.',
    idempotencyKey: 'required',
    liveIsWorkflow: true,
    query: z.strictObject({}),
    body: TopUpRequest,
    responses: { 201: TopUpResource, 202: TopUpResource },
    examples: { body: { amount: 2_500 }, 201: EXAMPLES.TOPUP, 202: EXAMPLES.PENDING_TOPUP },
    errors: [
      ...(['insufficient_funds', 'provider_declined', 'card_not_found'] as const),
      ...(['invalid_state', 'idempotency_in_flight', 'limit_exceeded', 'idempotency_conflict'] as const),
    ],
    async handle(input) {
      const { partnerId, mode } = input.caller;
      if (mode === 'test') {
        const request = keyedRequest('top_up_card', input, cardIdOf(input));
        const answer = await topUpInTestMode(dependencies, request, input.body);
        return replyOnce(answer, dependencies.eventsWritten);
      }
      const { id: cardId } = await readCard(dependencies.orm, input.caller, input.params.cardId ?? '');
      if (!dependencies.liveNetworkConfigured) {
        throw new ApiError('unavailable', { message: 'Live mode has no card network yet. Contact us.' });
      }
      const claim = await claimOperation(
        dependencies,
        keyedRequest('top_up_card', input, cardId),
        input.body,
      );
      if (claim.outcome === 'replay') return replay(claim.response);
      const { claimId } = claim;
      input.log({ workflowId: topUpCardWorkflowId(siblingId('topup', claimId)) });
      return topUpCard(dependencies, { claimId, cardId, partnerId, mode }, input.passTurn);
    },
  });

export const getTopUp = ({ orm }: { orm: Orm }) =>
  route({
    method: 'get',
    path: '/topups/:topupId',
    operationId: 'topups.get',
    summary: 'Retrieve a top-up',
    description: 'The top-up as it is now. Poll this while it is `pending`.',
    query: z.strictObject({}),
    responses: { 200: TopUpResource },
    examples: { 200: EXAMPLES.TOPUP },
    errors: ['topup_not_found'],
    handle: async ({ caller, params }) => ({
      status: 200,
      body: await readTopUp(orm, caller, params.topupId ?? ''),
    }),
  });

export const listTopUps = ({ orm }: { orm: Orm }) =>
  route({
    method: 'get',
    path: '/cards/:cardId/topups',
    operationId: 'topups.list',
    summary: "List a card's top-ups",
    description: 'Newest first.',
    query: z.strictObject({ limit: Limit, starting_after: StartingAfter('topup') }),
    responses: { 200: listOf(TopUpResource) },
    examples: { 200: EXAMPLES.listOf(EXAMPLES.TOPUP) },
    errors: ['card_not_found'],
    async handle({ caller, params, query: { limit, starting_after: startingAfter } }) {
      const cardId = params.cardId ?? '';
      const topUps = await readTopUpPage(orm, caller, { cardId, limit, startingAfter });
      return { status: 200, body: presentList(topUps, limit) };
    },
  });
