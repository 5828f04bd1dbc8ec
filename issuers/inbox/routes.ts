import Router from '@koa/router';
import type { Client } from '@temporalio/client';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { readBytes } from '../../api/http/body.ts';
import type { RequestState } from '../../api/http/log-request.ts';
import { expectLateAnswer } from '../../cards/late-answers.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { SettlementQueue } from '../../payments/settlement-queue.ts';
import { takeMessage } from '../../payments/take-message.ts';
import type { KeyRing } from '../../platform/crypto/key-ring.ts';
import { isLockTimeout } from '../../platform/db/is-retryable.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { asAccount } from '../../platform/process/work-context.ts';
import type {
  EventForLater,
  IngressRoute,
  MessageResult,
  OutcomeMessage,
  RequestMessage,
  TransactionMessage,
} from '../card-network.ts';
import { keepEvent } from './kept-events.ts';
import { operationWorkflowId, signalNetworkResult } from './network-result.ts';
import { receiveTransaction } from './receive-transaction.ts';
import { findNetworkCard, type NetworkCardOwner, toAuthorizationMessage } from './reports.ts';

/** An issuer can send the events of a whole purchase at once: 200 of Lithic's are 88 KB. */
const MAX_BODY_BYTES = 1_048_576;
/** How long a decision waits for a card that is locked. */
const MAX_DECISION_WAIT_MS = 1_500;
/**
 * How many cards a process finds by the network's id without a statement, those that were asked about last.
 */
const MAX_FOUND_CARDS = 50_000;

type FoundCards = LRUCache<string, Omit<NetworkCardOwner, 'status'>>;

export interface NetworkDependencies {
  orm: Orm;
  ring: KeyRing;
  client: Client;
  settlements: SettlementQueue;
  /** CARD_NETWORK */
  cardNetwork: string;
  /** The paths on which that network posts. */
  ingress: readonly IngressRoute[];
  /** How long an authorization holds its amount at most. */
  authorizationTtlMs: number;
  /** Called when there are events to send. */
  eventsWritten(): void;
  /** Called when the network's event was kept, for a worker to read. */
  eventsKept(): void;
  logger: Logger;
}

/**
 * What the card network posts, outside /v1. Its adapter says who sent it and what it means
 * (docs/decisions/card-networks.md); here each message becomes a command. A repeated one gets the same
 * response and changes nothing. If one fails, so does the whole post, and the network repeats it.
 */
export function networkRoutes(dependencies: NetworkDependencies): Router<RequestState> {
  const router = new Router<RequestState>();
  const found: FoundCards = new LRUCache({ max: MAX_FOUND_CARDS });
  for (const route of dependencies.ingress) {
    router.post(route.path, async (ctx) => {
      const post = { body: await readBytes(ctx.req, MAX_BODY_BYTES), headers: ctx.headers };
      if (!route.verify(post)) {
        throw new ApiError('invalid_api_key', {
          message: `${route.signatureHeader} does not match the body.`,
        });
      }
      const received = await route.read(post);
      if (received.handling === 'later') {
        await keep(dependencies, received, ctx.state);
        ctx.body = received.response.body;
        ctx.status = received.response.status;
        return;
      }
      const results: MessageResult[] = [];
      for (const message of received.messages) {
        if (message.type === 'outcome') results.push(await noteOutcome(dependencies, message, ctx.state));
        else if (message.type === 'request')
          results.push(await decideOrExplain(dependencies, found, message, ctx.state));
        else results.push(await takeTransaction(dependencies, message, ctx.state));
      }
      const { status, body } = await received.respond(results);
      ctx.body = body;
      ctx.status = status;
    });
  }
  return router;
}

/**
 * Keeps an event before it is answered. From then on the worker has it (docs/decisions/card-networks.md).
 * @throws ApiError `unavailable` if nothing more can be kept
 */
async function keep(
  { orm, ring, cardNetwork, eventsKept }: NetworkDependencies,
  { eventId, body }: EventForLater,
  { logFields }: RequestState,
): Promise<void> {
  logFields.networkEventId = eventId;
  await keepEvent({ orm, ring }, { network: cardNetwork, eventId, body });
  eventsKept();
}

/**
 * The network has an outcome for an issuance or a transfer. This is only a hint: the workflow asks the
 * network itself, so one that is lost, repeated, late or forged changes no outcome. One about an operation
 * that has ended makes a worker look it up (docs/decisions/decisions-by-hand.md).
 */
async function noteOutcome(
  { orm, client }: NetworkDependencies,
  { subject, token }: OutcomeMessage,
  { logFields }: RequestState,
): Promise<MessageResult> {
  logFields.workflowId = operationWorkflowId(subject, token);
  const isRunning = await signalNetworkResult(client, subject, token);
  // The operation has ended. The network may still contradict its end, so a worker looks it up.
  if (!isRunning) await expectLateAnswer(orm, { kind: subject, id: token });
  return { status: 'noted' };
}

/**
 * What the network can't mean, such as a request on an unknown card, and a card that stays locked are for its
 * adapter to answer.
 */
async function decideOrExplain(...asked: Parameters<typeof decide>): Promise<MessageResult> {
  try {
    return await decide(...asked);
  } catch (error) {
    if (isLockTimeout(error)) return { status: 'undecided', error: new ApiError('unavailable') };
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    return { status: 'undecided', error };
  }
}

/**
 * The network asks whether a card pays. It is decided in one transaction, and answered within its 2 s: a card
 * that is locked for longer gets 503, and the network decides by itself. The transaction takes its account's
 * turn, so the card has to be found first.
 * @throws ApiError `card_not_found`, `invalid_state`, `idempotency_conflict`: what the network can't mean
 */
async function decide(
  dependencies: NetworkDependencies,
  found: FoundCards,
  message: RequestMessage,
  state: RequestState,
): Promise<MessageResult> {
  const { orm, cardNetwork, authorizationTtlMs, eventsWritten } = dependencies;
  const { request } = message;
  const { networkCardId } = request;
  const remembered = found.get(networkCardId);
  const card = remembered ?? (await findNetworkCard(orm.em.fork(), networkCardId));
  if (card === null) throw new ApiError('card_not_found');
  found.set(networkCardId, card);
  state.logFields.partnerId = card.partnerId;
  state.logFields.mode = card.mode;
  const limits = { ttlMs: authorizationTtlMs, lockWaitMs: MAX_DECISION_WAIT_MS };
  try {
    const { declineReason, authorization } = await asAccount(card, () =>
      transaction(orm, (tx) => takeMessage(tx, toAuthorizationMessage(card, request, cardNetwork), limits)),
    );
    eventsWritten();
    return { status: 'decided', declineReason, authorizationId: authorization?.id ?? null };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'card_not_found') throw error;
    found.delete(networkCardId);
    if (remembered === undefined) throw error;
    // The card's id was corrected since it was found. It may be another card's by now.
    return decide(dependencies, found, message, state);
  }
}

/**
 * The network settled a transaction on a live card, or reports what became of an authorization. What can't be
 * booked now is kept, so that the network need not repeat it (docs/decisions/kept-network-messages.md).
 */
async function takeTransaction(
  dependencies: NetworkDependencies,
  { body, transaction }: TransactionMessage,
  { logFields }: RequestState,
): Promise<MessageResult> {
  const report = { network: dependencies.cardNetwork, body, transaction };
  const received = await receiveTransaction(dependencies, report, ({ partnerId, mode }) => {
    logFields.partnerId = partnerId;
    logFields.mode = mode;
  });
  if ('transactionId' in received) return { status: 'booked', transactionId: received.transactionId };
  if ('authorizationId' in received) return { status: 'applied', authorizationId: received.authorizationId };
  const { messageId, keptNow } = received;
  logFields.messageId = messageId;
  if (keptNow !== null) {
    const { networkTransactionId } = transaction;
    dependencies.logger.warn(
      { messageId, networkTransactionId, reason: keptNow },
      'kept a transaction that can not be booked now',
    );
  }
  return { status: 'kept', messageId };
}
