import { z } from 'zod';
import { creditFaucet } from '../../commands/accounts/balance.ts';
import type { CommandContext } from '../../commands/command-context.ts';
import { AmountCents } from '../../domain/fields.ts';
import { BalanceResource } from '../../resources/balance.ts';
import { keyedRequest, replyOnce } from '../http/claim-operation.ts';
import { route } from '../http/route.ts';
import * as EXAMPLES from '../openapi/examples.ts';

const MAX_CREDIT_CENTS = 10_000_000;

const CreditRequest = z
  .strictObject({
    amount: AmountCents.max(MAX_CREDIT_CENTS, `must be at most ${MAX_CREDIT_CENTS}`).describe(
      'Cents to add.',
    ),
  })
  .meta({ id: 'CreditBalanceRequest', description: 'How much you want to add to the test balance.' });

export const creditTestBalance = (dependencies: CommandContext) =>
  route({
    method: 'post',
    path: '/test/credit',
    operationId: 'testHelpers.creditBalance',
    summary: 'Credit the test balance',
    description: 'Adds pretend money: at most $100,000 a call, and 60 calls in any hour.',
    mode: 'test',
    idempotencyKey: 'required',
    query: z.strictObject({}),
    body: CreditRequest,
    responses: { 201: BalanceResource },
    examples: { body: { amount: 1_000_000 }, 201: EXAMPLES.BALANCE },
    errors: ['live_key_not_allowed', 'idempotency_in_flight', 'idempotency_conflict'],
    async handle(input) {
      const request = keyedRequest('credit_faucet', input, null);
      return replyOnce(await creditFaucet(dependencies, request, input.body.amount));
    },
  });
