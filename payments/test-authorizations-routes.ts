import { z } from 'zod';
import { keyedRequest, replyOnce } from '../api/http/keyed.ts';
import { declare, type RouteInput, resource } from '../api/http/route.ts';
import { requestedCardId } from '../cards/routes.ts';
import { NoFields } from '../cards/status-routes.ts';
import type { ClaimOperation } from '../domain/claim-operation.ts';
import { amountBetween } from '../domain/fields.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { AuthorizationResource } from './authorization-resource.ts';
import {
  AUTHORIZATION,
  CLEARING,
  CREATE_AUTHORIZATION,
  EXPIRED_AUTHORIZATION,
  REVERSED_AUTHORIZATION,
  TRANSACTION,
} from './examples.ts';
import { type FollowingAsked, simulateOnAuthorization, simulateOnCard } from './simulate.ts';
import { MAX_UNCHECKED_CENTS, MERCHANT_FIELDS, toMerchant } from './test-mode-routes.ts';
import { TransactionResource } from './transaction-resource.ts';

// What a merchant and the card network do with authorizations, on request (docs/partners/authorizations.md).
// Each is one transaction.

const Amount = amountBetween(1, MAX_UNCHECKED_CENTS).describe('Cents, at most 10,000,000.');

const CardUse = z.strictObject({ amount: Amount, ...MERCHANT_FIELDS });

const createTestAuthorization = declare({
  method: 'post',
  scope: 'test:write',
  mode: 'test',
  idempotencyKey: 'accepted',
  path: '/test/cards/:cardId/authorizations',
  operationId: 'testHelpers.createAuthorization',
  summary: 'Simulate an authorization',
  description:
    "A merchant asks for money on a test card. If the card's status, spending controls and its available balance allow it, the " +
    'amount is held, and the authorization is `pending`. Otherwise it is `declined`, and you pay the fee of a decline.',
  body: CardUse.meta({ id: 'CreateTestAuthorizationRequest', description: 'What the merchant asks for.' }),
  responses: { 201: AuthorizationResource },
  examples: { body: CREATE_AUTHORIZATION, 201: AUTHORIZATION },
  errors: ['card_not_found', 'invalid_state'],
});

const incrementTestAuthorization = declare({
  method: 'post',
  scope: 'test:write',
  mode: 'test',
  idempotencyKey: 'accepted',
  path: '/test/authorizations/:authorizationId/increment',
  operationId: 'testHelpers.incrementAuthorization',
  summary: 'Simulate an increment',
  description:
    'The merchant asks for more. The authorization has to be pending. If the increment is declined, the authorization stays ' +
    'as it was: its last request says why.',
  body: z
    .strictObject({ amount: Amount })
    .meta({ id: 'IncrementAuthorizationRequest', description: 'How much more the merchant asks for.' }),
  responses: { 200: AuthorizationResource },
  examples: { body: { amount: 500 }, 200: AUTHORIZATION },
  errors: ['authorization_not_found', 'invalid_state'],
});

const captureTestAuthorization = declare({
  method: 'post',
  scope: 'test:write',
  mode: 'test',
  idempotencyKey: 'accepted',
  path: '/test/authorizations/:authorizationId/capture',
  operationId: 'testHelpers.captureAuthorization',
  summary: 'Simulate a clearing',
  description:
    'The merchant takes its money: all that is left, or `amount`, which can be more. It is never declined. What the ' +
    "authorization and the card can't pay comes from your balance.",
  body: z
    .strictObject({
      amount: Amount.optional().describe(
        'Cents, at most 10,000,000. Leave it out for all that is left. If nothing is left, it is required.',
      ),
      final: z
        .boolean({ error: 'must be true or false' })
        .default(true)
        .describe('Whether the rest is released. If not, it stays held, and more clearings may follow.'),
    })
    .meta({ id: 'CaptureAuthorizationRequest', description: 'What the merchant takes.' }),
  bodyIsOptional: true,
  responses: { 201: TransactionResource },
  examples: { body: { amount: 1_250 }, 201: CLEARING },
  errors: ['authorization_not_found', 'invalid_state'],
});

const reverseTestAuthorization = declare({
  method: 'post',
  scope: 'test:write',
  mode: 'test',
  idempotencyKey: 'accepted',
  path: '/test/authorizations/:authorizationId/reverse',
  operationId: 'testHelpers.reverseAuthorization',
  summary: 'Simulate a reversal',
  description: 'The merchant gives back all that is left, or `amount`. The authorization has to be pending.',
  body: z
    .strictObject({
      amount: Amount.optional().describe('Cents, at most what is left. Leave it out for all that is left.'),
    })
    .meta({ id: 'ReverseAuthorizationRequest', description: 'What the merchant gives back.' }),
  bodyIsOptional: true,
  responses: { 200: AuthorizationResource },
  examples: { body: {}, 200: REVERSED_AUTHORIZATION },
  errors: ['authorization_not_found', 'invalid_state'],
});

const expireTestAuthorization = declare({
  method: 'post',
  scope: 'test:write',
  mode: 'test',
  idempotencyKey: 'accepted',
  path: '/test/authorizations/:authorizationId/expire',
  operationId: 'testHelpers.expireAuthorization',
  summary: 'Simulate an expiry',
  description: 'The authorization expires now, not at `expires_at`. It has to be pending.',
  body: NoFields,
  bodyIsOptional: true,
  responses: { 200: AuthorizationResource },
  examples: { 200: EXPIRED_AUTHORIZATION },
  errors: ['authorization_not_found', 'invalid_state'],
});

const forceCapture = declare({
  method: 'post',
  scope: 'test:write',
  mode: 'test',
  idempotencyKey: 'accepted',
  path: '/test/cards/:cardId/force-capture',
  operationId: 'testHelpers.forceCapture',
  summary: 'Simulate a clearing without an authorization',
  description:
    'A merchant takes money that it never asked for. It is never declined: what the card does not have comes from your ' +
    'balance. Any card that was issued will do, a blocked one too.',
  body: CardUse.meta({ id: 'ForceCaptureRequest', description: 'What the merchant takes.' }),
  responses: { 201: TransactionResource },
  examples: { body: CREATE_AUTHORIZATION, 201: TRANSACTION },
  errors: ['card_not_found', 'invalid_state'],
});

export interface TestAuthorizationDependencies extends CommandContext {
  /** How long an authorization holds its amount at most. */
  authorizationTtlMs: number;
  /** Called after a commit, so that events are sent without delay. */
  eventsWritten(): void;
}

export const testAuthorizations = resource(
  {
    createTestAuthorization,
    incrementTestAuthorization,
    captureTestAuthorization,
    reverseTestAuthorization,
    expireTestAuthorization,
    forceCapture,
  },
  (dependencies: TestAuthorizationDependencies) => {
    const { authorizationTtlMs: ttlMs, eventsWritten } = dependencies;

    async function onCard(
      operation: 'authorize_card' | 'force_capture',
      input: RouteInput<object, z.infer<typeof CardUse>>,
      type: 'authorization' | 'clearing',
    ) {
      const { body, requestId } = input;
      const request = keyedRequest(operation, input, requestedCardId(input));
      const message = {
        id: `simulated/${requestId}`,
        type,
        amountCents: body.amount,
        isFinal: true,
        merchant: toMerchant(body),
      };
      const answer = await simulateOnCard(dependencies, request, { message, networkPaymentId: null, ttlMs });
      return replyOnce(answer, eventsWritten);
    }

    async function onAuthorization(
      operation: ClaimOperation,
      input: RouteInput,
      asked: Pick<FollowingAsked, 'type' | 'amountCents' | 'isFinal'>,
    ) {
      const request = keyedRequest(operation, input, null);
      const { authorizationId = '' } = input.params;
      const message = { ...asked, messageId: `simulated/${input.requestId}`, ttlMs };
      const answer = await simulateOnAuthorization(dependencies, request, authorizationId, message);
      return replyOnce(answer, eventsWritten);
    }

    return {
      createTestAuthorization: (input) => onCard('authorize_card', input, 'authorization'),

      incrementTestAuthorization: (input) =>
        onAuthorization('increment_authorization', input, {
          type: 'increment',
          amountCents: input.body.amount,
        }),

      captureTestAuthorization: (input) =>
        onAuthorization('capture_authorization', input, {
          type: 'clearing',
          amountCents: input.body.amount,
          isFinal: input.body.final,
        }),

      reverseTestAuthorization: (input) =>
        onAuthorization('reverse_authorization', input, {
          type: 'reversal',
          amountCents: input.body.amount,
        }),

      expireTestAuthorization: (input) => onAuthorization('expire_authorization', input, { type: 'expiry' }),

      forceCapture: (input) => onCard('force_capture', input, 'clearing'),
    };
  },
);
