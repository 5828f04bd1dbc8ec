import { z } from 'zod';
import { keyedRequest, replyOnce } from '../api/http/keyed.ts';
import { declare, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import { TestPayment } from '../domain/deposit.ts';
import { isId } from '../domain/ids.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { RESOLVED_TEST_DEPOSIT, TEST_DEPOSIT } from './examples.ts';
import { resolveTestDeposit } from './resolve-in-test-mode.ts';
import { DepositRequest, DepositResource } from './resource.ts';
import { openTestDeposit } from './test-deposits.ts';

const CreateTestDepositRequest = z
  .strictObject({ amount: DepositRequest.shape.amount, payment: TestPayment.optional() })
  .meta({ id: 'CreateTestDepositRequest', description: 'How much to deposit, and what payment arrives.' });

const ResolveTestDepositRequest = z
  .strictObject({
    outcome: z
      .enum(['credit', 'returned'], { error: 'must be credit or returned' })
      .describe(
        '`credit`: what arrived is credited, rounded down to a cent. `returned`: nothing is credited.',
      ),
  })
  .meta({ id: 'ResolveTestDepositRequest', description: 'What becomes of what is in review.' });

const createTestDeposit = declare({
  method: 'post',
  path: '/test/deposits',
  operationId: 'testHelpers.createDeposit',
  summary: 'Create a test deposit',
  description:
    'Creates a deposit whose payment arrives by itself within 3 seconds, with the events and the changes of your test balance ' +
    'that a deposit has in live mode.',
  mode: 'test',
  scope: 'test:write',
  idempotencyKey: 'accepted',
  query: z.strictObject({}),
  body: CreateTestDepositRequest,
  responses: { 201: DepositResource },
  examples: { body: { amount: 250_000, payment: 'exact' }, 201: TEST_DEPOSIT },
  errors: ['live_key_not_allowed', 'limit_exceeded', 'idempotency_in_flight', 'idempotency_conflict'],
});

const resolveDeposit = declare({
  method: 'post',
  path: '/test/deposits/:depositId/resolve',
  operationId: 'testHelpers.resolveDeposit',
  summary: 'Resolve a test deposit',
  description:
    'Settles what is in review of a test deposit. For a live deposit, one of us does this after talking to you.',
  mode: 'test',
  scope: 'test:write',
  idempotencyKey: 'accepted',
  query: z.strictObject({}),
  body: ResolveTestDepositRequest,
  responses: { 200: DepositResource },
  examples: { body: { outcome: 'credit' }, 200: RESOLVED_TEST_DEPOSIT },
  errors: [
    'live_key_not_allowed',
    'deposit_not_found',
    'invalid_state',
    'idempotency_in_flight',
    'idempotency_conflict',
  ],
});

export interface TestDepositDependencies extends CommandContext {
  /** Called after a commit, so that events are sent without delay. */
  eventsWritten(): void;
}

export const testDeposits = resource(
  { createTestDeposit, resolveDeposit },
  (dependencies: TestDepositDependencies) => ({
    async createTestDeposit(input) {
      const { amount, payment = 'exact' } = input.body;
      const request = keyedRequest('create_test_deposit', input, null);
      return replyOnce(await openTestDeposit(dependencies, request, { amountCents: amount, payment }));
    },

    async resolveDeposit(input) {
      const { depositId = '' } = input.params;
      if (!isId('dep', depositId)) throw new ApiError('deposit_not_found');
      const request = keyedRequest('resolve_test_deposit', input, null);
      const outcome = input.body.outcome === 'credit' ? 'credited' : 'returned';
      const response = await resolveTestDeposit(dependencies, request, depositId, outcome);
      return replyOnce(response, dependencies.eventsWritten);
    },
  }),
);
