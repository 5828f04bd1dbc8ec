import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { Decision, IssuanceDecision, TransferDecision } from '../domain/decision.ts';
import {
  TRANSFERS,
  type TransferDeadlines,
  type TransferDirection,
  transferDeadlineMs,
} from '../domain/transfer.ts';
import {
  type CardNetwork,
  CardNetworkUnavailable,
  type IssueCardRequest,
  type LookUpAnswer,
  type TransferAsked,
  type TransferLookUpAnswer,
  TurnMissed,
} from '../issuers/card-network.ts';
import { isLasting } from '../platform/db/is-retryable.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { currentAttempt } from '../platform/temporal/attempts.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { readClaimResponse, type StoredResponse } from '../requests/response.ts';
import { DECISIONS } from './decision.ts';
import { acceptIssuance, completeIssuance, failIssuance, resolveIssuance } from './end-issuance.ts';
import { beginIssuance, type FundingContext, readPendingIssuance } from './issue.ts';
import {
  askAndNote,
  configured,
  type FundingEnd,
  heard,
  isSameDecision,
  type NetworkProgress,
  type OperationDependencies,
  type Resolved,
  toEvidence,
} from './network-activities.ts';
import { beginTransfer, readPendingTransfer } from './transfers/begin.ts';
import { acceptTransfer, completeTransfer, failTransfer, resolveTransfer } from './transfers/end.ts';

/**
 * The activities of `issueCard`. Each can be repeated at any point, and then does only what is left to do.
 */
export interface IssuanceActivities {
  /**
   * Holds the money of an issuance, unless it is held already, asks the network for the card, and acts on its
   * answer.
   * @param isHeld whether an earlier run has probably held it, so that the hold is looked up first
   * @param nextAskMs in how long the network is asked again, if it doesn't decide
   * @throws CardNetworkUnavailable if the network gives no definite answer; the money stays held
   */
  requestIssuance(claimId: string, isHeld?: boolean, nextAskMs?: number): Promise<NetworkProgress>;
  applyIssuanceResolution(claimId: string, decision: IssuanceDecision): Promise<Resolved>;
  /**
   * @returns how long the network may still take, in milliseconds; 0 if the issuance is marked as overdue.
   */
  flagIssuanceOverdue(claimId: string): Promise<number>;
}

/** The same of `topUpCard` and `withdrawFromCard`. */
export interface TransferActivities {
  requestTransfer(
    claimId: string,
    direction: TransferDirection,
    isHeld?: boolean,
    nextAskMs?: number,
  ): Promise<NetworkProgress>;
  applyTransferResolution(
    claimId: string,
    direction: TransferDirection,
    decision: TransferDecision,
  ): Promise<Resolved>;
  flagTransferOverdue(claimId: string, direction: TransferDirection): Promise<number>;
}

export interface FundingDependencies extends FundingContext, OperationDependencies, TransferDeadlines {
  issuanceDeadlineMs: number;
}

/** What moves money to or from a card once the network agrees: an issuance, or a transfer. */
interface Operation {
  claimId: string;
  kind: 'card' | TransferDirection;
}

/** What the network is asked for. */
type Asked = IssueCardRequest | TransferAsked;
type Answer = LookUpAnswer | TransferLookUpAnswer;

interface Pending {
  asked: Asked;
  /** A transfer names a card at the network that has turned out to be another one of ours. */
  isOthers?: boolean;
  /** An operator's, which waits to be applied. */
  decision: Decision | null;
}

/**
 * Asks with the token, and looks it up if there is no definite answer. The network may know the token even
 * then: it may have acted before its response was lost. If the turn to ask did not come, a look-up would only
 * wait for another one: the next attempt asks for the same thing with the same token, so it learns as much.
 * @throws CardNetworkUnavailable if the network gives no definite answer.
 */
async function askOrLookUp(network: CardNetwork, asked: Asked): Promise<Answer> {
  try {
    return await ('direction' in asked ? network.transfer(asked) : network.issueCard(asked));
  } catch (error) {
    if (!(error instanceof CardNetworkUnavailable) || error instanceof TurnMissed) throw error;
    const known = await lookUp(network, asked);
    if (known.status === 'unknown') throw error;
    return known;
  }
}

/** Only looks up what was sent before. @throws CardNetworkUnavailable if the network does not know it */
async function lookUpOthers(network: CardNetwork, asked: Asked): Promise<Answer> {
  const known = await lookUp(network, asked);
  if (known.status !== 'unknown') return known;
  throw new CardNetworkUnavailable(
    "nothing was sent: what was this card's id at the network is another card's",
  );
}

const lookUp = (network: CardNetwork, asked: Asked): Promise<Answer> =>
  'direction' in asked ? network.lookUpTransfer(asked) : network.lookUpIssuance(asked.token);

/** When a workflow asks for the first time again, unless it says otherwise. */
const FIRST_POLL_MS = 1_000;

const NOT_RECORDED =
  'an operation\'s end could not be recorded, so it stays pending; "operator attention list" has it, with what to do';

export function createFundingActivities(
  dependencies: FundingDependencies,
): IssuanceActivities & TransferActivities {
  const { orm, liveNetwork, answered, opened, logger, signalSender } = dependencies;

  const tableOf = ({ kind }: Operation) => (kind === 'card' ? 'card' : 'card_transfer');

  const deadlineOf = ({ kind }: Operation): number =>
    kind === 'card' ? dependencies.issuanceDeadlineMs : transferDeadlineMs(dependencies, kind);

  const readPending = ({ claimId, kind }: Operation): Promise<Pending | null> =>
    kind === 'card'
      ? readPendingIssuance(dependencies, claimId)
      : readPendingTransfer(dependencies, claimId, kind);

  async function request(
    operation: Operation,
    isHeld = false,
    nextAskMs = FIRST_POLL_MS,
  ): Promise<NetworkProgress> {
    const pending = await beginOrRead(operation, isHeld);
    if ('outcome' in pending) return pending;
    const { claimId, kind } = operation;
    const { asked, isOthers = false, decision, isFirst } = pending;
    const hear = isOthers ? lookUpOthers : askOrLookUp;
    const deadlineMs = deadlineOf(operation);
    const network = configured(liveNetwork);
    let answer: Answer | null = null;
    try {
      answer = await askAndNote(orm, { claimId, isFirst, nextAskMs, deadlineMs }, () => hear(network, asked));
    } catch (error) {
      if (!(error instanceof CardNetworkUnavailable)) throw error;
      if (decision === null) throw error instanceof TurnMissed ? toTurnMissed(error) : error;
    }
    if (answer !== null) {
      const end = await follow(operation, answer);
      if (end !== null) return end;
      const accept = kind === 'card' ? acceptIssuance : acceptTransfer;
      answered(claimId, await accept(dependencies, claimId));
    }
    // An operator's command may have died after it recorded a decision and before it signalled the workflow.
    if (decision === null) return 'accepted';
    const resolved = await resolve(operation, decision, answer === null ? null : asked, null);
    return resolved.over ? resolved.end : 'accepted';
  }

  /** What to ask the network for, or how the operation ended. */
  async function beginOrRead(
    operation: Operation,
    isHeld: boolean,
  ): Promise<(Pending & { isFirst: boolean }) | FundingEnd> {
    const { claimId, kind } = operation;
    const found = isHeld ? await readPending(operation) : null;
    if (found !== null) return { ...found, isFirst: false };
    const begun =
      kind === 'card'
        ? await beginIssuance(dependencies, claimId)
        : await beginTransfer(dependencies, claimId, kind);
    if (begun.state === 'answered') {
      answered(claimId, begun.response);
      return begun.response === null ? readEnd(operation) : refusedWith(begun.response);
    }
    opened?.(claimId);
    if (begun.asked !== null) return { asked: begun.asked, decision: null, isFirst: true };
    const held = await readPending(operation);
    if (held !== null) return { ...held, isFirst: false };
    answered(claimId, null);
    return readEnd(operation);
  }

  /**
   * How an operation ended, according to its row; without a row, it was refused, and its response says why.
   */
  async function readEnd(operation: Operation): Promise<FundingEnd> {
    const { claimId, kind } = operation;
    const [row] = await DECISIONS[tableOf(operation)].failure(orm.em.fork(), { claimId });
    if (row === undefined) return endWithoutRow(dependencies, claimId);
    if (row.failure_code !== null) return { outcome: 'failed', reason: row.failure_code };
    return { outcome: kind === 'card' ? 'issued' : 'succeeded' };
  }

  /**
   * Acts on the network's answer.
   * @returns null if the answer is not definite, or can't be recorded as things are: the operation waits then
   *   as if the network had not decided, so that its deadline is reached and an operator can decide
   */
  async function follow(operation: Operation, answer: Answer): Promise<FundingEnd | null> {
    if (answer.status === 'accepted' || answer.status === 'unknown') return null;
    const { claimId } = operation;
    let end: FundingEnd;
    let response: StoredResponse | null;
    try {
      ({ end, response } = await record(operation, answer));
    } catch (error) {
      if (!isLasting(error)) throw error;
      const described = describeError(error);
      logger.error({ claimId, error: described }, NOT_RECORDED);
      const networkCardId = answer.status === 'issued' ? answer.networkCardId : null;
      await DECISIONS[tableOf(operation)].note(orm, { claimId, reason: described.summary, networkCardId });
      return null;
    }
    answered(claimId, response);
    // No response: something else ended the operation in the meantime.
    return response === null ? readEnd(operation) : end;
  }

  /** Records the network's yes or no. */
  async function record(
    { claimId, kind }: Operation,
    answer: Exclude<Answer, { status: 'accepted' | 'unknown' }>,
  ): Promise<{ end: FundingEnd; response: StoredResponse | null }> {
    if (answer.status === 'issued') {
      const response = await completeIssuance(dependencies, claimId, answer);
      return { end: { outcome: 'issued' }, response };
    }
    if (answer.status === 'succeeded') {
      const response = await completeTransfer(dependencies, claimId);
      return { end: { outcome: 'succeeded' }, response };
    }
    const isDeclined = answer.status === 'declined';
    if (kind === 'card') {
      const reason = isDeclined ? 'provider_declined' : 'issuance_failed';
      const response = await failIssuance(dependencies, claimId, reason);
      return { end: { outcome: 'failed', reason }, response };
    }
    const reason = isDeclined ? 'provider_declined' : TRANSFERS[kind].networkFailure;
    const response = await failTransfer(dependencies, claimId, reason);
    return { end: { outcome: 'failed', reason }, response };
  }

  /**
   * Applies an operator's decision. A definite answer from the network takes precedence.
   * @param asked what to ask the network about; null if there is no need to ask
   * @param sending who signalled the decision; null if an operator's command recorded it, which has its audit
   * entry already
   */
  async function resolve(
    operation: Operation,
    decision: Decision,
    asked: Asked | null,
    sending: Promise<string | null> | null,
  ): Promise<Resolved> {
    const answer = asked === null ? null : await heard(liveNetwork, (network) => lookUp(network, asked));
    const end = answer === null ? null : await follow(operation, answer);
    if (end !== null) return { over: true, end };
    const { claimId, kind } = operation;
    const known = { deadlineMs: deadlineOf(operation), sentBy: await sending };
    const resolving =
      kind === 'card'
        ? resolveIssuance(dependencies, claimId, decision, { ...known, evidence: toEvidence(answer) })
        : resolveTransfer(dependencies, claimId, decision, { ...known, direction: kind });
    const { verdict, response } = await resolving.catch(async (error: unknown) => {
      if (!isLasting(error)) throw error;
      logger.error({ claimId, error: describeError(error) }, NOT_RECORDED);
      await DECISIONS[tableOf(operation)].refuseOfClaim(orm, { claimId });
      return { verdict: { over: false as const, because: 'not_recordable' as const }, response: null };
    });
    if (!verdict.over) return verdict;
    answered(claimId, response);
    return { over: true, end: await readEnd(operation) };
  }

  async function applyResolution(operation: Operation, decision: Decision): Promise<Resolved> {
    const sending = signalSender('resolve', (input) => isSameDecision(input, decision));
    // It is awaited after the network has answered, and not at all if that decides.
    sending.catch(() => {});
    const pending = await readPending(operation);
    return resolve(operation, decision, pending?.asked ?? null, sending);
  }

  async function flagOverdueIfPending(operation: Operation): Promise<number> {
    if ((await readPending(operation)) === null) return 0;
    const { claimId } = operation;
    const deadlineMs = deadlineOf(operation);
    const [row] = await DECISIONS[tableOf(operation)].flag(orm, { claimId, deadlineMs });
    return row?.remaining_ms ?? 0;
  }

  return {
    requestIssuance: (claimId, isHeld, nextAskMs) => request({ claimId, kind: 'card' }, isHeld, nextAskMs),
    requestTransfer: (claimId, kind, isHeld, nextAskMs) => request({ claimId, kind }, isHeld, nextAskMs),
    applyIssuanceResolution: (claimId, decision) => applyResolution({ claimId, kind: 'card' }, decision),
    applyTransferResolution: (claimId, kind, decision) => applyResolution({ claimId, kind }, decision),
    flagIssuanceOverdue: (claimId) => flagOverdueIfPending({ claimId, kind: 'card' }),
    flagTransferOverdue: (claimId, kind) => flagOverdueIfPending({ claimId, kind }),
  };
}

/** How many attempts wait for a turn before the workflow looks what else has happened. */
const MAX_TURNS_MISSED = 8;

/**
 * The attempt failed, and the next one comes soon, at random so that a burst of operations does not ask again in
 * step. The first attempt, which a request's process makes, leaves that to a worker.
 */
function toTurnMissed({ message }: TurnMissed): ApplicationFailure {
  const { attempt, isLocal } = currentAttempt();
  return ApplicationFailure.create({
    type: 'TurnMissed',
    message,
    nonRetryable: isLocal || attempt >= MAX_TURNS_MISSED,
    nextRetryDelay: 2_000 + Math.random() * 4_000,
    category: ApplicationFailureCategory.BENIGN,
  });
}

/** A refusal, by its code. The rest of the response is for the partner. */
function refusedWith({ body }: StoredResponse): FundingEnd {
  const { code: reason } = (JSON.parse(body) as { error: { code: string } }).error;
  return { outcome: reason === 'provider_declined' ? 'failed' : 'refused', reason };
}

/** How an operation ended that left no row: it was refused, and its response says why. */
async function endWithoutRow(context: CommandContext, claimId: string): Promise<FundingEnd> {
  const response = await readClaimResponse(context, claimId);
  return response === null ? { outcome: 'refused' } : refusedWith(response);
}
