import { z } from 'zod';
import { type RespondingDependencies, respondToClaimed } from '../api/http/claimed-work.ts';
import { isOutage } from '../api/http/errors.ts';
import { keyedRequest, replay, replyAs, replyOnce } from '../api/http/keyed.ts';
import { type Declaration, declare, type Reply, type RouteInput, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import type { StatusChangeOperation } from '../domain/card-status.ts';
import type { ClaimedWorkflow } from '../requests/claimed-workflow.ts';
import type { StoredResponse } from '../requests/response.ts';
import { changeCardStatusWorkflowId } from '../workflows/messages.ts';
import { changeStatusInTestMode } from './change-in-test-mode.ts';
import { beginStatusChange } from './change-status.ts';
import { BLOCKED_CARD, CARD, FROZEN_CARD } from './examples.ts';
import { CardResource } from './resource.ts';
import { claimAboutCard, requestedCardId } from './routes.ts';

/** The body of a request that says everything in its path. */
export const NoFields = z
  .strictObject({})
  .meta({ id: 'NoFields', description: 'An empty object. You can leave it out.' });

const IN_LIVE_MODE =
  'In live mode the card network has to confirm the change. If it takes too long, you get 503 `unavailable` and the change ' +
  "continues: the card's status and an event tell you when it is done.";

const freezeCard = declareChange({
  path: '/cards/:cardId/freeze',
  operationId: 'cards.freeze',
  summary: 'Freeze a card',
  description: `The card has to be active. Authorizations decline until you unfreeze it. ${IN_LIVE_MODE}`,
  examples: { 200: FROZEN_CARD },
});

const unfreezeCard = declareChange({
  path: '/cards/:cardId/unfreeze',
  operationId: 'cards.unfreeze',
  summary: 'Unfreeze a card',
  description: `The card has to be frozen. It becomes active again. ${IN_LIVE_MODE}`,
  examples: { 200: CARD },
});

const blockCard = declareChange({
  path: '/cards/:cardId/block',
  operationId: 'cards.block',
  summary: 'Block a card permanently',
  description: `The card has to be active or frozen. Its available balance goes back to your balance. ${IN_LIVE_MODE}`,
  examples: { 200: BLOCKED_CARD },
});

interface StatusChangeDependencies extends RespondingDependencies {
  /** Whether live mode has a card network. */
  liveNetworkConfigured: boolean;
}

export const cardStatus = resource(
  { freezeCard, unfreezeCard, blockCard },
  (dependencies: StatusChangeDependencies) => {
    const changing = (operation: StatusChangeOperation) => (input: RouteInput) =>
      change(dependencies, operation, input);
    return {
      freezeCard: changing('freeze_card'),
      unfreezeCard: changing('unfreeze_card'),
      blockCard: changing('block_card'),
    };
  },
);

function declareChange(
  declared: Pick<Declaration, 'path' | 'operationId' | 'summary' | 'description' | 'examples'>,
) {
  return declare({
    method: 'post',
    scope: 'cards:write',
    ...declared,
    idempotencyKey: 'accepted',
    liveIsWorkflow: true,
    body: NoFields,
    bodyIsOptional: true,
    responses: { 200: CardResource },
    errors: ['card_not_found', 'invalid_state'],
  });
}

async function change(
  dependencies: StatusChangeDependencies,
  operation: StatusChangeOperation,
  input: RouteInput,
): Promise<Reply<{ 200: typeof CardResource }>> {
  const { partnerId, mode } = input.caller;
  const cardId = requestedCardId(input);
  const request = { ...keyedRequest(operation, input, cardId), cardId };
  if (mode === 'test') {
    const response = await changeStatusInTestMode(dependencies, request);
    return replyOnce(response, dependencies.eventsWritten);
  }
  const claim = await claimAboutCard(dependencies, request, null);
  if (claim.outcome === 'replay') return replay(claim);
  const { claimId } = claim;
  input.log({ workflowId: changeCardStatusWorkflowId(cardId, claimId) });
  const { taskQueue } = dependencies;
  const response = await changeInLiveMode(
    dependencies,
    { claimId, partnerId, mode, cardId, operation, taskQueue, deadlineMs: 0 },
    input.passTurn,
  );
  return input.idempotencyKey === '' ? response : replyAs(claimId, response);
}

/**
 * Starts or joins a change of a live card's status and returns its response. If no worker picks it up in
 * time, the first step runs here, so that the partner still learns of a refusal. If the outcome takes too
 * long, the change continues without the request.
 * @throws ApiError `unavailable` if the outcome is not known yet.
 */
async function changeInLiveMode(
  dependencies: RespondingDependencies,
  workflow: ClaimedWorkflow,
  passTurn: () => void,
): Promise<StoredResponse> {
  try {
    return await respondToClaimed(dependencies, workflow, {
      passTurn,
      answer: async () => void (await beginStatusChange(dependencies, workflow.claimId)),
    });
  } catch (error) {
    // The claim is committed: once whatever is down is back, the sweep starts its work.
    const goesOn = error instanceof ApiError ? error.code === 'unavailable' : isOutage(error);
    throw goesOn ? new ApiError('unavailable', { message: GOES_ON }) : error;
  }
}

const GOES_ON =
  'The card network has not confirmed the change yet, and we are still waiting for it. To learn the outcome, read the ' +
  'card, wait for its event, or retry with the same Idempotency-Key.';
