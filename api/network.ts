import Router from '@koa/router';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { SettlementQueue } from '../commands/settlement/settlement-queue.ts';
import type { Orm } from '../db/orm.ts';
import { readStatement } from '../db/sql.ts';
import { ApiError } from '../domain/api-error.ts';
import { NetworkCallback } from '../domain/card-network.ts';
import { AmountCents, Label, NetworkId } from '../domain/fields.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { TransactionType } from '../domain/transaction.ts';
import { issueCardWorkflowId, networkResult, topUpCardWorkflowId } from '../workflows/messages.ts';
import { readSignedBody, type VerifyCallback } from './http/body.ts';
import type { RequestState } from './http/log-request.ts';

/** What a callback of each type is about. */
const SUBJECTS = {
  'card.issuance': { prefix: 'card', workflowId: issueCardWorkflowId },
  'card.topup': { prefix: 'topup', workflowId: topUpCardWorkflowId },
} as const;

const Callback = NetworkCallback.refine(({ token, type }) => isId(SUBJECTS[type].prefix, token), {
  path: ['token'],
});

/** The network repeats a callback that gets 503, and Temporal's own patience would keep it waiting for half a minute. */
const SIGNAL_TIMEOUT_MS = 3_000;

export interface CallbackDependencies {
  client: Client;
  verifyCallback: VerifyCallback;
}

/**
 * `POST /network/callbacks`, outside /v1: the card network has an outcome for an issuance or a top-up. This is only a hint:
 * the workflow asks the network itself, so a callback that is lost, repeated, late or forged changes no outcome.
 */
export function networkCallbacks({ client, verifyCallback }: CallbackDependencies): Router<RequestState> {
  const router = new Router<RequestState>();
  router.post('/network/callbacks', async (ctx) => {
    const { token, type } = await readSignedBody(ctx, verifyCallback, Callback);
    const workflowId = SUBJECTS[type].workflowId(token);
    ctx.state.logFields.workflowId = workflowId;
    try {
      await client.withDeadline(Date.now() + SIGNAL_TIMEOUT_MS, () =>
        client.workflow.getHandle(workflowId).signal(networkResult),
      );
    } catch (error) {
      // The workflow has finished, so the callback no longer matters.
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
    ctx.status = 204;
  });
  return router;
}

const Words = Label(255).nullable().default(null);

// Strict, unlike callbacks: an unknown field could mean that a different amount moves, or none.
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
  'refused a transaction from the card network: it would take a balance past the largest safe integer; resolve it with the ' +
  'network by hand';

/**
 * `POST /network/transactions`, outside /v1: the card network settles a transaction on a live card. It repeats a transaction
 * until it gets a response; a repeated one gets the same response and changes nothing. A transaction that can never be
 * booked gets 400 and is logged for an operator.
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

/** Our card with this id at the live network, and its account. Neither can change. @throws ApiError `card_not_found` */
async function findNetworkCard(orm: Orm, networkCardId: string): Promise<Tenant & { cardId: string }> {
  const [row] = await liveCardWith(orm.em.fork(), { networkCardId });
  if (row === undefined) throw new ApiError('card_not_found', { message: 'No card has this networkCardId.' });
  return { cardId: row.id, partnerId: row.partner_id, mode: row.mode };
}

const liveCardWith = readStatement((db, { networkCardId }: { networkCardId: string }) =>
  db
    .selectFrom('card')
    .select(['id', 'partner_id', 'mode'])
    .where('network_card_id', '=', networkCardId)
    // A literal, so that the planner can use the partial index.
    .where('mode', '=', sql.lit<'live'>('live')),
);
