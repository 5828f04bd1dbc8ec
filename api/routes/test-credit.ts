import { z } from 'zod';
import type { CommandContext } from '../../commands/command-context.ts';
import { creditFaucet } from '../../commands/credit-faucet.ts';
import { BalanceResource } from '../../domain/balance-resource.ts';
import { AmountCents } from '../../domain/fields.ts';
import { keyedRequest, replyOnce } from '../claim-operation.ts';
import { route } from '../route.ts';

const MAX_CREDIT_CENTS = 10_000_000;

export const creditTestBalance = (dependencies: CommandContext) =>
  route({
    method: 'post',
    path: '/test/credit',
    summary: 'Credit the test balance with pretend money',
    description: 'At most $100,000 a call and 60 calls in any hour.',
    mode: 'test',
    idempotencyKey: 'required',
    query: z.strictObject({}),
    body: z.strictObject({
      amount: AmountCents.max(MAX_CREDIT_CENTS, `must be at most ${MAX_CREDIT_CENTS}`),
    }),
    responses: { 201: BalanceResource },
    errors: ['live_key_not_allowed', 'idempotency_in_flight', 'idempotency_conflict'],
    async handle(input) {
      const request = keyedRequest('credit_faucet', input, null);
      return replyOnce(await creditFaucet(dependencies, request, input.body.amount));
    },
  });
