import {
  type CardNetwork,
  CardNetworkUnavailable,
  type IssueCardRequest,
  type StatusChangeAnswer,
  type StatusChangeRequest,
  type TransferAsked,
} from '../../issuers/card-network.ts';
import type { WorkerOptions } from '../../worker/start-worker.ts';
import { startTestStack, type TestStack } from './stack.ts';

type Ask = () => Promise<StatusChangeAnswer>;
/** What happens to one request to the network, which `ask` passes on. */
type Treatment = (ask: Ask) => Promise<StatusChangeAnswer>;

export interface UnrulyNetwork {
  options: WorkerOptions;
  /** What happens to the next status changes, in this order; the others are passed on. */
  next: Treatment[];
  usual: Treatment;
  /** What happens to issuances. */
  issuances<Answer>(ask: () => Promise<Answer>, request: IssueCardRequest): Promise<Answer>;
  /** What happens to top-ups and withdrawals. */
  transfers(
    ask: () => ReturnType<CardNetwork['transfer']>,
    request: TransferAsked,
  ): ReturnType<CardNetwork['transfer']>;
  lookedUp: string[];
  asked: StatusChangeRequest[];
  /** Sends a request to the network itself, as somebody else might. */
  ask(request: StatusChangeRequest): Promise<StatusChangeAnswer>;
}

/** A worker's network that treats its status changes as a test says. */
export function unrulyNetwork(): UnrulyNetwork {
  let real: CardNetwork | undefined;
  const unruly: UnrulyNetwork = {
    next: [],
    usual: (ask) => ask(),
    issuances: (ask) => ask(),
    transfers: (ask) => ask(),
    lookedUp: [],
    asked: [],
    ask: (request) => {
      if (real === undefined) throw new Error('no worker has been started with these options');
      return real.changeCardStatus(request);
    },
    options: {
      around: {
        activities: (same) => same,
        network: (network) => {
          real = network;
          return {
            ...network,
            issueCard: (request) => unruly.issuances(() => network.issueCard(request), request),
            lookUpIssuance: (token) => {
              unruly.lookedUp.push(token);
              return network.lookUpIssuance(token);
            },
            transfer: (request) => unruly.transfers(() => network.transfer(request), request),
            changeCardStatus: (request) => {
              unruly.asked.push(request);
              return (unruly.next.shift() ?? unruly.usual)(() => network.changeCardStatus(request));
            },
          };
        },
      },
    },
  };
  return unruly;
}

export const unavailable: Treatment = () =>
  Promise.reject(new CardNetworkUnavailable('card network: it answered 503, in a test'));

/** The network acts, but its answer is lost. */
export const answerLost: Treatment = async (ask) => {
  await ask();
  throw new CardNetworkUnavailable('card network: no answer, in a test');
};

export const refused: Treatment = async () => ({ status: 'refused', reason: 'in_a_test' });

/** The service with a worker whose network treats its status changes as a test says. */
export async function startUnrulyStack(
  cardCreationWaitMs: number,
): Promise<{ stack: TestStack; network: UnrulyNetwork }> {
  const network = unrulyNetwork();
  const stack = await startTestStack({ cardCreationWaitMs }, { worker: false });
  await stack.startWorker(network.options);
  return { stack, network };
}
