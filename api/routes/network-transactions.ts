import Router from '@koa/router';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { SettlementQueue } from '../../commands/settlement/settlement-queue.ts';
import type { Orm } from '../../db/orm.ts';
import { ApiError } from '../../domain/api-error.ts';
import { AmountCents, Label, NetworkId } from '../../domain/fields.ts';
import { TransactionType } from '../../domain/transaction.ts';
import { findNetworkCard } from '../find-network-card.ts';
import { readSignedBody, type VerifyCallback } from '../http/read-signed-body.ts';
import type { RequestState } from '../http/request-state.ts';

const Words = Label(255).nullable().default(null);

// Strict, unlike callbacks: a field we don't know could mean that another amount, or none, is to be moved.
const NetworkTransaction = z.strictObject({
  networkCardId: NetworkId,
  networkTransactionId: NetworkId,
  type: TransactionType,
  amountCents: AmountCents,
  currency: z.literal('USD'),
  forced: z.boolean().default(true),
  merchant: z.strictObject({ name: Words, categoryCode: Words, city: Words, country: Words }).prefault({}),
});

export interface NetworkTransactionDependencies {
  orm: Orm;
  settlements: SettlementQueue;
  verifyCallback: VerifyCallback;
  logger: Logger;
}

const UNBOOKABLE =
  'a transaction of the card network was refused: it would take a balance past the largest integer. It has to be settled ' +
  'with the network by hand';

/**
 * `POST /network/transactions`, outside /v1: the card network settles what a live card was used for. It sends it until
 * it gets an answer; what was told before is answered with the same transaction, and nothing happens. What can't be
 * booked, however often it is told, is answered 400 and logged for a person.
 */
export function networkTransactions(dependencies: NetworkTransactionDependencies): Router<RequestState> {
  const { orm, settlements, verifyCallback, logger } = dependencies;
  const router = new Router<RequestState>();
  router.post('/network/transactions', async (ctx) => {
    const told = await readSignedBody(ctx, verifyCallback, NetworkTransaction);
    const { networkTransactionId, type, amountCents, forced, merchant } = told;
    const card = await findNetworkCard(orm, told.networkCardId);
    Object.assign(ctx.state.logFields, { partnerId: card.partnerId, mode: card.mode });
    const { name, city, country, categoryCode: category_code } = merchant;
    const settling = settlements.settle({
      ...{ ...card, networkTransactionId, type, amountCents, forced, simulated: false },
      merchant: { name, category_code, city, country },
    });
    const { transaction } = await settling.catch((error: unknown) => {
      const isUnbookable = error instanceof ApiError && error.code === 'validation_failed';
      if (isUnbookable) logger.error({ ...card, networkTransactionId }, UNBOOKABLE);
      throw error;
    });
    ctx.body = { transactionId: transaction.id };
  });
  return router;
}
