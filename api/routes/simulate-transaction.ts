import { z } from 'zod';
import type { CommandContext } from '../../commands/command-context.ts';
import type { SettlementQueue } from '../../commands/settlement/settlement-queue.ts';
import { simulateTransaction } from '../../commands/settlement/simulate-transaction.ts';
import { SimulateTransactionRequest } from '../../domain/simulate-transaction-request.ts';
import { NO_MERCHANT, TransactionResource } from '../../resources/transaction.ts';
import { keyedRequest, replyOnce } from '../http/claim-operation.ts';
import { route } from '../http/route.ts';
import * as EXAMPLES from '../openapi/examples.ts';
import { cardIdOf } from '../read-cards.ts';

export interface SimulationDependencies extends CommandContext {
  settlements: SettlementQueue;
  /** Called after a commit, so that events are sent without delay. */
  eventsWritten(): void;
}

export const simulateCardTransaction = (dependencies: SimulationDependencies) =>
  route({
    method: 'post',
    path: '/test/cards/:cardId/simulate-transaction',
    operationId: 'testHelpers.simulateTransaction',
    summary: 'Simulate a transaction',
    description:
      'Makes a purchase, decline or refund on a test card, which has to be active. It is settled as in live mode: money ' +
      "moves, fees are debited, and the event is sent. A purchase above the card's balance is declined.",
    mode: 'test',
    idempotencyKey: 'accepted',
    query: z.strictObject({}),
    body: SimulateTransactionRequest,
    responses: { 201: TransactionResource },
    examples: { body: EXAMPLES.SIMULATE_TRANSACTION, 201: EXAMPLES.TRANSACTION },
    errors: [
      'live_key_not_allowed',
      'card_not_found',
      'invalid_state',
      'idempotency_in_flight',
      'idempotency_conflict',
    ],
    async handle(input) {
      const { caller, body, requestId } = input;
      const cardId = cardIdOf(input);
      const { partnerId, mode } = caller;
      const settlement = {
        ...{ partnerId, mode, cardId, type: body.type, amountCents: body.amount },
        ...{ networkTransactionId: `simulated/${requestId}`, forced: false, simulated: true },
        merchant: {
          ...NO_MERCHANT,
          name: body.merchant_name ?? null,
          category_code: body.merchant_category_code ?? null,
        },
      };
      if (input.idempotencyKey === '') {
        const { transaction } = await dependencies.settlements.settle(settlement);
        return { status: 201, body: transaction };
      }
      const request = keyedRequest('simulate_transaction', input, cardId);
      return replyOnce(
        await simulateTransaction(dependencies, request, settlement),
        dependencies.eventsWritten,
      );
    },
  });
