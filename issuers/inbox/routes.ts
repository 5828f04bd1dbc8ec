import Router from '@koa/router';
import type { Client } from '@temporalio/client';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { readBytes } from '../../api/http/body.ts';
import type { RequestState } from '../../api/http/log-request.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { DeclineReason } from '../../domain/authorization.ts';
import type { NetworkReport } from '../../domain/simulated-network.ts';
import { decidePayment } from '../../payments/decide-payment.ts';
import type { MessageQueue } from '../../payments/message-queue.ts';
import type { KeyRing } from '../../platform/crypto/key-ring.ts';
import { isLockTimeout } from '../../platform/db/is-retryable.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { PoolBusy } from '../../platform/db/pool.ts';
import type { Transactor } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { asAccount, untilAborted } from '../../platform/process/work-context.ts';
import type { IngressRoute, MessageResult, RequestMessage, SimulatedRequest } from '../card-network.ts';
import { findNetworkCard, type NetworkCardOwner } from './find-card.ts';
import { expectObject } from './inbox.ts';
import { noteOutcome, operationWorkflowId } from './network-result.ts';
import { createInboxRoom } from './room.ts';
import { receiveReport, type SimulatedContext, takeSaid } from './simulated-messages.ts';

/** An issuer can send the events of a whole purchase at once: 200 of Lithic's are 88 KB. */
const MAX_BODY_BYTES = 1_048_576;
/**
 * How long after its post a decision may begin: until then it is read, its card found, its account's turn at
 * the database and the card's lock waited for. The rest of the network's 2 s is for our answer.
 */
const MAX_DECISION_WAIT_MS = 1_500;
/**
 * How many cards a process finds by the network's id without a statement, those that were asked about last.
 */
const MAX_FOUND_CARDS = 50_000;

export interface NetworkDependencies {
  orm: Orm;
  ring: KeyRing;
  client: Client;
  /** CARD_NETWORK */
  cardNetwork: string;
  /** The paths on which that network posts. */
  ingress: readonly IngressRoute[];
  /** Takes what the simulated network reports. */
  messages: MessageQueue;
  /** How long an authorization holds its amount at most. */
  authorizationTtlMs: number;
  /** Called when there are events to send. */
  eventsWritten(): void;
  /** Called when something has changed at the network, for a worker to look at. */
  inboxFilled(): void;
  logger: Logger;
}

interface DecisionDependencies extends NetworkDependencies {
  found: LRUCache<string, Omit<NetworkCardOwner, 'status'>>;
  /** Until when it has to begin, as performance.now() says it. */
  decideByMs: number;
}

/**
 * What the card network posts, outside /v1. Its adapter says who sent it and what it means
 * (docs/decisions/card-networks.md); here each message becomes a command. A repeated one gets the same
 * response and changes nothing. If one fails, so does the whole post, and the network repeats it.
 */
export function networkRoutes(given: NetworkDependencies): Router<RequestState> {
  const router = new Router<RequestState>();
  const dependencies = { ...given, room: createInboxRoom(given.orm) };
  // With `max`, it would be allocated as a whole.
  const found: DecisionDependencies['found'] = new LRUCache({
    maxSize: MAX_FOUND_CARDS,
    sizeCalculation: () => 1,
  });
  for (const route of dependencies.ingress) {
    router.post(route.path, async (ctx) => {
      const decideByMs = performance.now() + MAX_DECISION_WAIT_MS;
      const post = { body: await readBytes(ctx.req, MAX_BODY_BYTES), headers: ctx.headers };
      if (!route.verify(post)) {
        throw new ApiError('invalid_api_key', {
          message: `${route.signatureHeader} does not match the body.`,
        });
      }
      const received = await route.read(post);
      if (received.handling === 'later') {
        // From here on a worker has it (docs/decisions/inbox.md).
        ctx.state.logFields.networkObjectId = received.object.id;
        await expectObject(dependencies, dependencies.cardNetwork, received.object);
        dependencies.inboxFilled();
        ctx.body = received.response.body;
        ctx.status = received.response.status;
        return;
      }
      const results: MessageResult[] = [];
      for (const message of received.messages) {
        if (message.type === 'outcome') {
          ctx.state.logFields.workflowId = operationWorkflowId(message.subject, message.token);
          await noteOutcome(dependencies, message);
          results.push({ status: 'noted' });
        } else if (message.type === 'simulated report')
          results.push(await takeReport(dependencies, message.said, ctx.state));
        else results.push(await decideOrExplain({ ...dependencies, found, decideByMs }, message, ctx.state));
      }
      const { status, body } = await received.respond(results);
      ctx.body = body;
      ctx.status = status;
    });
  }
  return router;
}

/**
 * What the network can't mean, such as a request on an unknown card, and a decision that would come too late
 * are for its adapter to answer.
 */
async function decideOrExplain(...asked: Parameters<typeof decide>): Promise<MessageResult> {
  try {
    return await decide(...asked);
  } catch (error) {
    if (isLockTimeout(error) || error instanceof PoolBusy)
      return { status: 'undecided', error: new ApiError('unavailable') };
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    return { status: 'undecided', error };
  }
}

/**
 * The network asks whether a card pays. It is decided in one transaction, and answered within its 2 s. If it
 * can't begin in time, it is left undecided, and the network decides by itself. The transaction takes its
 * account's turn, so the card has to be found first.
 * @throws ApiError `card_not_found`, `invalid_state`: what the network can't mean
 */
async function decide(
  dependencies: DecisionDependencies,
  message: RequestMessage | SimulatedRequest,
  state: RequestState,
): Promise<MessageResult> {
  const { orm, found, decideByMs, authorizationTtlMs: ttlMs, eventsWritten } = dependencies;
  const { networkCardId } = message.type === 'request' ? message : message.said;
  const leftMs = () => Math.round(decideByMs - performance.now());
  if (leftMs() <= 0) throw tooLate();
  const late = new AbortController();
  const patience = setTimeout(() => late.abort(tooLate()), leftMs());
  const remembered = found.get(networkCardId);
  try {
    const card =
      remembered ?? (await untilAborted(late.signal, () => findNetworkCard(orm.em.fork(), networkCardId)));
    if (card === null) throw new ApiError('card_not_found');
    found.set(networkCardId, card);
    state.logFields.partnerId = card.partnerId;
    state.logFields.mode = card.mode;
    const decided = await asAccount(card, () =>
      untilAborted(late.signal, () =>
        transaction(orm, (tx) => {
          clearTimeout(patience);
          return decideMessage(tx, card, message, { ttlMs, lockWaitMs: Math.max(1, leftMs()) });
        }),
      ),
    );
    eventsWritten();
    return { status: 'decided', ...decided };
  } catch (error) {
    // Whatever the error is, the abort caused it.
    if (late.signal.aborted) throw late.signal.reason;
    if (!(error instanceof ApiError) || error.code !== 'card_not_found') throw error;
    found.delete(networkCardId);
    if (remembered === undefined) throw error;
    // The card's id was corrected since it was found. It may be another card's by now.
    return decide(dependencies, message, state);
  } finally {
    clearTimeout(patience);
  }
}

const tooLate = (): PoolBusy => new PoolBusy('a decision could not begin in its time');

async function decideMessage(
  tx: Transactor,
  card: Omit<NetworkCardOwner, 'status'>,
  message: RequestMessage | SimulatedRequest,
  limits: { ttlMs: number; lockWaitMs: number },
): Promise<{ declineReason: DeclineReason | null; authorizationId: string | null }> {
  if (message.type === 'request') {
    const { type: _, ...request } = message;
    const { reason, booked } = await decidePayment(tx, { cardId: card.cardId, ...request }, limits);
    return { declineReason: reason, authorizationId: booked?.authorization?.id ?? null };
  }
  const { declineReason, authorizationId } = (await takeSaid(tx, card, message.said, limits)).answer;
  return { declineReason, authorizationId };
}

/** The simulated network settled a transaction, or reports what became of an authorization. */
async function takeReport(
  dependencies: NetworkDependencies & SimulatedContext,
  said: NetworkReport,
  { logFields }: RequestState,
): Promise<MessageResult> {
  const result = await receiveReport(dependencies, said, ({ partnerId, mode }) => {
    logFields.partnerId = partnerId;
    logFields.mode = mode;
  });
  if (result.status !== 'kept') return result;
  const { messageId } = result;
  dependencies.logger.warn(
    { messageId, type: said.type },
    'a message can not be booked yet, so it is kept and tried again',
  );
  dependencies.inboxFilled();
  return result;
}
