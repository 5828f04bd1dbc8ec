import { z } from 'zod';
import { changeStatusInTestMode } from '../../commands/test-operations.ts';
import { CardResource } from '../../domain/card-resource.ts';
import type { StatusChangeOperation } from '../../domain/status-change.ts';
import { changeCardStatusWorkflowId } from '../../workflows/messages.ts';
import type { AnsweringDependencies } from '../answer-claimed.ts';
import { changeCardStatus } from '../change-card-status.ts';
import { claimOperation, keyedRequest, replyOnce } from '../claim-operation.ts';
import { cardIdOf, readCard } from '../read-cards.ts';
import { replay } from '../replay.ts';
import { route } from '../route.ts';

const IN_LIVE_MODE =
  'In live mode the card network is told. 503 `unavailable`: it has not confirmed yet; the change goes on, and the ' +
  "card's status tells.";

export const freezeCard = (dependencies: AnsweringDependencies) =>
  statusRoute(dependencies, 'freeze_card', {
    path: '/cards/:cardId/freeze',
    summary: 'Freeze a card',
    description: `From active. Authorizations decline until it is unfrozen. ${IN_LIVE_MODE}`,
  });

export const unfreezeCard = (dependencies: AnsweringDependencies) =>
  statusRoute(dependencies, 'unfreeze_card', {
    path: '/cards/:cardId/unfreeze',
    summary: 'Unfreeze a card',
    description: `From frozen. ${IN_LIVE_MODE}`,
  });

export const blockCard = (dependencies: AnsweringDependencies) =>
  statusRoute(dependencies, 'block_card', {
    path: '/cards/:cardId/block',
    summary: 'Block a card for good',
    description: `From active or frozen. What is on the card goes to the balance. ${IN_LIVE_MODE}`,
  });

function statusRoute(
  dependencies: AnsweringDependencies,
  operation: StatusChangeOperation,
  words: { path: string; summary: string; description: string },
) {
  return route({
    method: 'post',
    ...words,
    idempotencyKey: 'accepted',
    liveIsWorkflow: true,
    query: z.strictObject({}),
    body: z.strictObject({}),
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
