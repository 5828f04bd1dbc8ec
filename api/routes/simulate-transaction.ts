import { z } from 'zod';
import type { CommandContext } from '../../commands/command-context.ts';
import type { SettlementQueue } from '../../commands/settlement-queue.ts';
import { simulateTransaction } from '../../commands/simulate-transaction.ts';
import { newId } from '../../db/new-id.ts';
import { ApiError } from '../../domain/api-error.ts';
import { isId } from '../../domain/ids.ts';
import { SimulateTransactionRequest } from '../../domain/simulate-transaction-request.ts';
import { NO_MERCHANT, TransactionResource } from '../../domain/transaction-resource.ts';
import { fingerprintOf } from '../fingerprint.ts';
import { replay } from '../replay.ts';
import { route } from '../route.ts';

export interface SimulationDependencies extends CommandContext {
  settlements: SettlementQueue;
  /** Called after a commit, so that events are sent without delay. */
  eventsWritten(): void;
}

export const simulateCardTransaction = (dependencies: SimulationDependencies) =>
  route({
    method: 'post',
    path: '/test/cards/:cardId/simulate-transaction',
    summary: 'Simulate a purchase, decline or refund on a test card',
    description:
      'Runs the settlement that live transactions run: money moves, fees post, the event is sent. A purchase above ' +
      "the card's balance is recorded as a decline.",
    mode: 'test',
    idempotencyKey: 'accepted',
    query: z.strictObject({}),
    body: SimulateTransactionRequest,
    responses: { 201: TransactionResource },
    errors: [
      'live_key_not_allowed',
      'card_not_found',
      'invalid_state',
      'idempotency_in_flight',
      'idempotency_conflict',
    ],
    async handle({ caller, params, body, path, idempotencyKey, requestId }) {
      const { cardId = '' } = params;
      if (!isId('card', cardId)) throw new ApiError('card_not_found');
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
      if (idempotencyKey === '') {
        const { transaction } = await dependencies.settlements.settle(settlement);
        return { status: 201, body: transaction };
      }
      const fingerprint = fingerprintOf('POST', path, body);
      const claim = { claimId: newId('claim'), partnerId, mode, key: idempotencyKey, fingerprint, requestId };
      const { replayed, response } = await simulateTransaction(dependencies, claim, settlement);
      dependencies.eventsWritten();
      return replayed ? replay(response) : response;
    },
  });
