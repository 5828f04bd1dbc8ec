import Router from '@koa/router';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { Logger } from 'pino';
import { expectLateAnswer } from '../commands/funding/late-answers.ts';
import { receiveTransaction } from '../commands/settlement/book-messages.ts';
import type { SettlementQueue } from '../commands/settlement/settlement-queue.ts';
import type { KeyRing } from '../crypto/key-ring.ts';
import type { Orm } from '../db/orm.ts';
import { ApiError } from '../domain/api-error.ts';
import { NetworkCallback } from '../domain/card-network.ts';
import { isId } from '../domain/ids.ts';
import { NetworkTransaction, readReport } from '../domain/network-transaction.ts';
import { parseJson } from '../domain/parse-json.ts';
import { issueCardWorkflowId, networkResult, topUpCardWorkflowId } from '../workflows/messages.ts';
import { readSignedBody, readSignedBytes, type VerifyCallback } from './http/body.ts';
import type { RequestState } from './http/log-request.ts';
import { validate } from './http/validate.ts';

/** What a callback of each type is about. */
const SUBJECTS = {
  'card.issuance': { kind: 'card', prefix: 'card', workflowId: issueCardWorkflowId },
  'card.topup': { kind: 'topup', prefix: 'topup', workflowId: topUpCardWorkflowId },
} as const;

const Callback = NetworkCallback.refine(({ token, type }) => isId(SUBJECTS[type].prefix, token), {
  path: ['token'],
});

/** The network repeats a callback that gets 503, and Temporal's own patience would keep it waiting for half a minute. */
const SIGNAL_TIMEOUT_MS = 3_000;

export interface CallbackDependencies {
  orm: Orm;
  client: Client;
  verifyCallback: VerifyCallback;
}

/**
 * `POST /network/callbacks`, outside /v1: the card network has an outcome for an issuance or a top-up. This is only a hint:
 * the workflow asks the network itself, so a callback that is lost, repeated, late or forged changes no outcome. One about an
 * operation that has ended makes a worker look it up (docs/decisions/decisions-by-hand.md).
 */
export function networkCallbacks({
  orm,
  client,
  verifyCallback,
}: CallbackDependencies): Router<RequestState> {
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
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      // The operation has ended. The network may still contradict its end, so a worker looks it up.
      await expectLateAnswer(orm, SUBJECTS[type].kind, token);
    }
    ctx.status = 204;
  });
  return router;
}

export interface NetworkTransactionDependencies {
  orm: Orm;
  ring: KeyRing;
  settlements: SettlementQueue;
  verifyCallback: VerifyCallback;
  cardNetwork: string;
  /** Called when a kept transaction was booked: there are events to send. */
  eventsWritten(): void;
  logger: Logger;
}

/**
 * `POST /network/transactions`, outside /v1: the card network settles a transaction on a live card. 200 with the id of our
 * transaction; or 202 if it can't be booked now and is kept, so that the network need not repeat it
 * (docs/decisions/kept-network-messages.md). A repeated one gets the same response and changes nothing.
 */
export function networkTransactions(dependencies: NetworkTransactionDependencies): Router<RequestState> {
  const { verifyCallback, cardNetwork, logger } = dependencies;
  const router = new Router<RequestState>();
  router.post('/network/transactions', async (ctx) => {
    const { logFields } = ctx.state;
    const body = await readSignedBytes(ctx, verifyCallback);
    const value = parseJson(body);
    const transaction = readReport(value);
    if (transaction === null) throw ApiError.ofFields(validate(NetworkTransaction, value, 'body').issues);
    const report = { network: cardNetwork, body, transaction };
    const received = await receiveTransaction(dependencies, report, ({ partnerId, mode }) => {
      Object.assign(logFields, { partnerId, mode });
    });
    if ('transactionId' in received) {
      ctx.body = { transactionId: received.transactionId };
      return;
    }
    const { messageId, keptNow } = received;
    logFields.messageId = messageId;
    if (keptNow !== null) {
      const { networkTransactionId } = transaction;
      logger.warn(
        { messageId, networkTransactionId, reason: keptNow },
        'kept a transaction that can not be booked now',
      );
    }
    ctx.status = 202;
    ctx.body = { status: 'kept', messageId };
  });
  return router;
}
