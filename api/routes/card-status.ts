import { z } from 'zod';
import { claimIdempotencyKey } from '../../commands/claim-idempotency-key.ts';
import { newId } from '../../db/new-id.ts';
import { CardResource } from '../../domain/card-resource.ts';
import type { StatusChangeOperation } from '../../domain/status-change.ts';
import { changeCardStatusWorkflowId } from '../../workflows/messages.ts';
import type { AnsweringDependencies } from '../answer-claimed.ts';
import { changeCardStatus } from '../change-card-status.ts';
import { fingerprintOf } from '../fingerprint.ts';
import { readCard } from '../read-cards.ts';
import { replay } from '../replay.ts';
import { route } from '../route.ts';
import { LEASE_MS } from '../while-leased.ts';

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
    query: z.strictObject({}),
    body: z.strictObject({}),
    bodyIsOptional: true,
    responses: { 200: CardResource },
    errors: ['card_not_found', 'invalid_state', 'idempotency_in_flight', 'idempotency_conflict'],
    async handle({ caller, params, path, body, idempotencyKey, requestId, log }) {
      const { orm, ring } = dependencies;
      const { partnerId, mode } = caller;
      const { id: cardId } = await readCard(orm, caller, params.cardId ?? '');
      const claim = await claimIdempotencyKey(orm.em.fork(), ring, {
        claimId: newId('claim'),
        partnerId,
        mode,
        key: idempotencyKey === '' ? null : idempotencyKey,
        operation,
        cardId,
        fingerprint: fingerprintOf('POST', path, body),
        sealedRequest: null,
        requestId,
        leaseMs: LEASE_MS,
      });
      if (claim.outcome === 'replay') return replay(claim.response);
      const { claimId } = claim;
      log({ workflowId: changeCardStatusWorkflowId(cardId, claimId) });
      return changeCardStatus(dependencies, { claimId, partnerId, mode, cardId, operation });
    },
  });
}
