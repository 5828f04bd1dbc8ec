import { z } from 'zod';
import { changeStatusInTestMode } from '../../commands/funding/test-operations.ts';
import type { StatusChangeOperation } from '../../domain/status-change.ts';
import { CardResource } from '../../resources/card.ts';
import { changeCardStatusWorkflowId } from '../../workflows/messages.ts';
import { changeCardStatus } from '../change-card-status.ts';
import type { AnsweringDependencies } from '../http/answer-claimed.ts';
import { claimOperation, keyedRequest, replyOnce } from '../http/claim-operation.ts';
import { replay } from '../http/replay.ts';
import { type Route, route } from '../http/route.ts';
import * as EXAMPLES from '../openapi/examples.ts';
import { cardIdOf, readCard } from '../read-cards.ts';

const IN_LIVE_MODE =
  'In live mode the card network has to confirm. If it has not confirmed in time, you get 503 `unavailable` and the ' +
  "change goes on: the card's status and an event tell you when it is done.";

export const freezeCard = (dependencies: AnsweringDependencies) =>
  statusRoute(dependencies, 'freeze_card', {
    path: '/cards/:cardId/freeze',
    operationId: 'cards.freeze',
    summary: 'Freeze a card',
    description: `The card has to be active. Authorizations decline until you unfreeze it. ${IN_LIVE_MODE}`,
    examples: { 200: EXAMPLES.FROZEN_CARD },
  });

export const unfreezeCard = (dependencies: AnsweringDependencies) =>
  statusRoute(dependencies, 'unfreeze_card', {
    path: '/cards/:cardId/unfreeze',
    operationId: 'cards.unfreeze',
    summary: 'Unfreeze a card',
    description: `The card has to be frozen. It becomes active again. ${IN_LIVE_MODE}`,
    examples: { 200: EXAMPLES.CARD },
  });

export const blockCard = (dependencies: AnsweringDependencies) =>
  statusRoute(dependencies, 'block_card', {
    path: '/cards/:cardId/block',
    operationId: 'cards.block',
    summary: 'Block a card permanently',
    description: `The card has to be active or frozen. What is on it goes to your balance. ${IN_LIVE_MODE}`,
    examples: { 200: EXAMPLES.BLOCKED_CARD },
  });

function statusRoute(
  dependencies: AnsweringDependencies,
  operation: StatusChangeOperation,
  declared: Pick<Route, 'path' | 'operationId' | 'summary' | 'description' | 'examples'>,
) {
  return route({
    method: 'post',
    ...declared,
    idempotencyKey: 'accepted',
    liveIsWorkflow: true,
    query: z.strictObject({}),
    body: z.strictObject({}).meta({ id: 'NoFields', description: 'An empty object. You can leave it out.' }),
    bodyIsOptional: true,
    responses: { 200: CardResource },
    errors: ['card_not_found', 'invalid_state', 'idempotency_in_flight', 'idempotency_conflict'],
    async handle(input) {
      const { partnerId, mode } = input.caller;
      if (mode === 'test') {
        const request = keyedRequest(operation, input, cardIdOf(input));
        const answer = await changeStatusInTestMode(dependencies, request);
        return replyOnce(answer, dependencies.eventsWritten);
      }
      const { id: cardId } = await readCard(dependencies.orm, input.caller, input.params.cardId ?? '');
      const claim = await claimOperation(dependencies, keyedRequest(operation, input, cardId), null);
      if (claim.outcome === 'replay') return replay(claim.response);
      const { claimId } = claim;
      input.log({ workflowId: changeCardStatusWorkflowId(cardId, claimId) });
      return changeCardStatus(dependencies, { claimId, partnerId, mode, cardId, operation }, input.passTurn);
    },
  });
}
