import type { TransferDecision } from '../../domain/decision.ts';
import {
  TRANSFERS,
  type TransferDeadlines,
  type TransferDirection,
  transferDeadlineMs,
} from '../../domain/transfer.ts';
import {
  CardNetworkUnavailable,
  type TransferAsked,
  type TransferLookUpAnswer,
} from '../../issuers/card-network.ts';
import { isLasting } from '../../platform/db/is-retryable.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import type { StoredResponse } from '../../requests/response.ts';
import { flagOverdue, noteNotRecorded, refuseLastingly } from '../decision.ts';
import {
  askAndNote,
  askOrLookUp,
  configured,
  endWithoutRow,
  FIRST_POLL_MS,
  type FundingEnd,
  heard,
  isSameDecision,
  type NetworkProgress,
  NOT_RECORDED,
  type OperationDependencies,
  type Resolved,
  refusedWith,
} from '../network-activities.ts';
import { beginTransfer, readPendingTransfer } from './begin.ts';
import { acceptTransfer, completeTransfer, failTransfer, readTransferEnd, resolveTransfer } from './end.ts';

/**
 * The activities of `topUpCard` and `withdrawFromCard`. Each can be repeated at any point, and then does only
 * what is left to do.
 */
export interface TransferActivities {
  /**
   * Holds the money of a transfer, unless it is held already, asks the network to move it, and acts on its
   * answer.
   * @param isHeld whether an earlier run has probably held it, so that the hold is looked up first
   * @param nextAskMs in how long the network is asked again, if it doesn't decide
   * @throws CardNetworkUnavailable if the network gives no definite answer; the money stays held
   */
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
  /**
   * @returns how long the network may still take, in milliseconds; 0 if the transfer is marked as overdue.
   */
  flagTransferOverdue(claimId: string, direction: TransferDirection): Promise<number>;
}

export interface TransferActivityDependencies extends OperationDependencies, TransferDeadlines {}

/** The claim of a transfer. */
interface Claimed {
  claimId: string;
  direction: TransferDirection;
}

export function createTransferActivities(dependencies: TransferActivityDependencies): TransferActivities {
  const { orm, liveNetwork, answered, opened, logger, signalSender } = dependencies;

  async function request(claimed: Claimed, isHeld: boolean, nextAskMs: number): Promise<NetworkProgress> {
    const pending = await beginOrRead(claimed, isHeld);
    if ('outcome' in pending) return pending;
    const { claimId, direction } = claimed;
    const { asked, decision, isFirst } = pending;
    const deadlineMs = transferDeadlineMs(dependencies, direction);
    const network = configured(liveNetwork);
    let answer: TransferLookUpAnswer | null = null;
    try {
      answer = await askAndNote(orm, { claimId, isFirst, nextAskMs, deadlineMs }, () =>
        askOrLookUp(
          () => network.transfer(asked),
          () => network.lookUpTransfer(asked),
        ),
      );
    } catch (error) {
      if (!(error instanceof CardNetworkUnavailable) || decision === null) throw error;
    }
    if (answer !== null) {
      const end = await follow(claimed, answer);
      if (end !== null) return end;
      answered(claimId, await acceptTransfer(dependencies, claimId));
    }
    // An operator's command may have died after it recorded a decision and before it signalled the workflow.
    if (decision === null) return 'accepted';
    const resolved = await resolve(claimed, decision, answer === null ? null : asked, null);
    return resolved.over ? resolved.end : 'accepted';
  }

  /** What to ask the network for, or how the transfer ended. */
  async function beginOrRead(
    { claimId, direction }: Claimed,
    isHeld: boolean,
  ): Promise<{ asked: TransferAsked; decision: TransferDecision | null; isFirst: boolean } | FundingEnd> {
    const found = isHeld ? await readPendingTransfer(dependencies, claimId, direction) : null;
    if (found !== null) return { ...found, isFirst: false };
    const begun = await beginTransfer(dependencies, claimId, direction);
    if (begun.state === 'answered') {
      answered(claimId, begun.response);
      return begun.response === null ? readEnd(claimId) : refusedWith(begun.response);
    }
    opened?.(claimId);
    if (begun.asked !== null) return { asked: begun.asked, decision: null, isFirst: true };
    const held = await readPendingTransfer(dependencies, claimId, direction);
    if (held !== null) return { ...held, isFirst: false };
    answered(claimId, null);
    return readEnd(claimId);
  }

  /** How a transfer ended, according to its row; without a row, it was refused, and its response says why. */
  async function readEnd(claimId: string): Promise<FundingEnd> {
    const end = await readTransferEnd(dependencies, claimId);
    if (end === null) return endWithoutRow(dependencies, claimId);
    return end.failure === null ? { outcome: 'succeeded' } : { outcome: 'failed', reason: end.failure };
  }

  /**
   * Acts on the network's answer.
   * @returns null if the answer is not definite, or can't be recorded as things are: the transfer waits then
   *   as if the network had not decided, so that its deadline is reached and an operator can decide
   */
  async function follow(
    { claimId, direction }: Claimed,
    answer: TransferLookUpAnswer,
  ): Promise<FundingEnd | null> {
    if (answer.status === 'accepted' || answer.status === 'unknown') return null;
    const failure = answer.status === 'declined' ? 'provider_declined' : TRANSFERS[direction].networkFailure;
    let response: StoredResponse | null;
    try {
      response =
        answer.status === 'succeeded'
          ? await completeTransfer(dependencies, claimId)
          : await failTransfer(dependencies, claimId, failure);
    } catch (error) {
      if (!isLasting(error)) throw error;
      const described = describeError(error);
      logger.error({ claimId, error: described }, NOT_RECORDED);
      await noteNotRecorded(orm, 'card_transfer', claimId, { reason: described.summary });
      return null;
    }
    answered(claimId, response);
    // No response: something else ended the transfer in the meantime.
    if (response === null) return readEnd(claimId);
    return answer.status === 'succeeded' ? { outcome: 'succeeded' } : { outcome: 'failed', reason: failure };
  }

  /**
   * Applies an operator's decision. A definite answer from the network takes precedence.
   * @param asked what to ask the network about; null if there is no need to ask
   * @param sending who signalled the decision; null if an operator's command recorded it, which has its audit
   * entry already
   */
  async function resolve(
    claimed: Claimed,
    decision: TransferDecision,
    asked: TransferAsked | null,
    sending: Promise<string | null> | null,
  ): Promise<Resolved> {
    const answer = asked === null ? null : await heard(liveNetwork, (it) => it.lookUpTransfer(asked));
    const end = answer === null ? null : await follow(claimed, answer);
    if (end !== null) return { over: true, end };
    const { claimId, direction } = claimed;
    const deadlineMs = transferDeadlineMs(dependencies, direction);
    const known = { direction, deadlineMs, sentBy: await sending };
    const { verdict, response } = await resolveTransfer(dependencies, claimId, decision, known).catch(
      async (error: unknown) => {
        if (!isLasting(error)) throw error;
        logger.error({ claimId, error: describeError(error) }, NOT_RECORDED);
        return { verdict: await refuseLastingly(orm, 'card_transfer', claimId), response: null };
      },
    );
    if (!verdict.over) return verdict;
    answered(claimId, response);
    return { over: true, end: await readEnd(claimId) };
  }

  return {
    requestTransfer: (claimId, direction, isHeld = false, nextAskMs = FIRST_POLL_MS) =>
      request({ claimId, direction }, isHeld, nextAskMs),
    async applyTransferResolution(claimId, direction, decision) {
      const sending = signalSender('resolve', (input) => isSameDecision(input, decision));
      // It is awaited after the network has answered, and not at all if that decides.
      sending.catch(() => {});
      const pending = await readPendingTransfer(dependencies, claimId, direction);
      return resolve({ claimId, direction }, decision, pending?.asked ?? null, sending);
    },
    async flagTransferOverdue(claimId, direction) {
      if ((await readPendingTransfer(dependencies, claimId, direction)) === null) return 0;
      const deadlineMs = transferDeadlineMs(dependencies, direction);
      return flagOverdue(orm, 'card_transfer', { claimId, deadlineMs });
    },
  };
}
