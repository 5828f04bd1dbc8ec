import type { Logger } from 'pino';
import type { WithdrawalDecision } from '../../domain/decision.ts';
import {
  type CardNetwork,
  CardNetworkUnavailable,
  type WithdrawalLookUpAnswer,
} from '../../issuers/card-network.ts';
import { isLasting } from '../../platform/db/is-retryable.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import type { CommandContext } from '../../requests/command-context.ts';
import { readClaimResponse, type StoredResponse } from '../../requests/response.ts';
import { flagOverdue, noteNotRecorded, refuseLastingly } from '../decision.ts';
import {
  askAndNote,
  askOrLookUp,
  configured,
  FIRST_POLL_MS,
  type FundingEnd,
  heard,
  isSameDecision,
  type NetworkProgress,
  NOT_RECORDED,
  type Resolved,
  refusedWith,
} from '../network-activities.ts';
import {
  acceptWithdrawal,
  completeWithdrawal,
  failWithdrawal,
  readWithdrawalEnd,
  resolveWithdrawal,
} from './end-withdrawal.ts';
import { type AskedWithdrawal, beginWithdrawal, readPendingWithdrawal } from './withdraw.ts';

/** The activities of `withdrawFromCard`. Each can be repeated at any point, and then does only what is left to do. */
export interface WithdrawalActivities {
  /**
   * Holds the money of a withdrawal, unless it is held already, asks the network to take it off the card, and acts on its answer.
   * @param isHeld whether an earlier run has probably held it, so that the hold is looked up first
   * @param nextAskMs in how long the network is asked again, if it doesn't decide
   * @throws CardNetworkUnavailable if the network gives no definite answer; the money stays held
   */
  requestWithdrawal(claimId: string, isHeld?: boolean, nextAskMs?: number): Promise<NetworkProgress>;
  applyWithdrawalResolution(claimId: string, decision: WithdrawalDecision): Promise<Resolved>;
  /** @returns how long the network may still take, in milliseconds; 0 if the withdrawal is marked as overdue. */
  flagWithdrawalOverdue(claimId: string): Promise<number>;
}

export interface WithdrawalActivityDependencies extends CommandContext {
  /** Live mode's network; null if none is configured, in which case no money is ever held for it. */
  liveNetwork: CardNetwork | null;
  withdrawalDeadlineMs: number;
  /**
   * Called when a claim has its response, to notify waiting requests. Does not throw.
   * @param response the response, if this process has just stored it; null if it was stored earlier
   */
  answered(claimId: string, response: StoredResponse | null): void;
  logger: Logger;
  /** Who sent the workflow's newest signal with such an input; null if Temporal doesn't say. */
  signalSender(signal: string, isThis: (input: unknown) => boolean): Promise<string | null>;
  /** Called after the money is held, before the network is asked. Does not throw. */
  opened?(claimId: string): void;
}

export function createWithdrawalActivities(
  dependencies: WithdrawalActivityDependencies,
): WithdrawalActivities {
  const {
    orm,
    liveNetwork,
    withdrawalDeadlineMs: deadlineMs,
    answered,
    opened,
    logger,
    signalSender,
  } = dependencies;

  async function requestWithdrawal(
    claimId: string,
    isHeld = false,
    nextAskMs = FIRST_POLL_MS,
  ): Promise<NetworkProgress> {
    const pending = await beginOrRead(claimId, isHeld);
    if ('outcome' in pending) return pending;
    const { asked, decision, isFirst } = pending;
    const network = configured(liveNetwork);
    let answer: WithdrawalLookUpAnswer | null = null;
    try {
      answer = await askAndNote(orm, { claimId, isFirst, nextAskMs, deadlineMs }, () =>
        askOrLookUp(
          () => network.withdrawFromCard(asked),
          () => network.lookUpWithdrawal(asked.token),
        ),
      );
    } catch (error) {
      if (!(error instanceof CardNetworkUnavailable) || decision === null) throw error;
    }
    if (answer !== null) {
      const end = await follow(claimId, answer);
      if (end !== null) return end;
      answered(claimId, await acceptWithdrawal(dependencies, claimId));
    }
    // An operator's command may have died after it recorded a decision and before it signalled the workflow.
    if (decision === null) return 'accepted';
    const resolved = await resolve(claimId, decision, answer === null ? null : asked.token, null);
    return resolved.over ? resolved.end : 'accepted';
  }

  /** What to ask the network for, or how the withdrawal ended. */
  async function beginOrRead(
    claimId: string,
    isHeld: boolean,
  ): Promise<{ asked: AskedWithdrawal; decision: WithdrawalDecision | null; isFirst: boolean } | FundingEnd> {
    const found = isHeld ? await readPendingWithdrawal(dependencies, claimId) : null;
    if (found !== null) return { ...found, isFirst: false };
    const begun = await beginWithdrawal(dependencies, claimId);
    if (begun.state === 'answered') {
      answered(claimId, begun.response);
      return begun.response === null ? readEnd(claimId) : refusedWith(begun.response);
    }
    opened?.(claimId);
    if (begun.asked !== null) return { asked: begun.asked, decision: null, isFirst: true };
    const held = await readPendingWithdrawal(dependencies, claimId);
    if (held !== null) return { ...held, isFirst: false };
    answered(claimId, null);
    return readEnd(claimId);
  }

  /** How a withdrawal ended, according to its row; without a row, it was refused, and its response says why. */
  async function readEnd(claimId: string): Promise<FundingEnd> {
    const end = await readWithdrawalEnd(dependencies, claimId);
    if (end === null) {
      const response = await readClaimResponse(dependencies, claimId);
      return response === null ? { outcome: 'refused' } : refusedWith(response);
    }
    return end.failure === null ? { outcome: 'succeeded' } : { outcome: 'failed', reason: end.failure };
  }

  /**
   * Acts on the network's answer.
   * @returns null if the answer is not definite, or can't be recorded as things are: the withdrawal waits then as if the network
   *   had not decided, so that its deadline is reached and an operator can decide
   */
  async function follow(claimId: string, answer: WithdrawalLookUpAnswer): Promise<FundingEnd | null> {
    if (answer.status === 'accepted' || answer.status === 'unknown') return null;
    const failure = answer.status === 'declined' ? 'provider_declined' : 'withdrawal_failed';
    let response: StoredResponse | null;
    try {
      response =
        answer.status === 'succeeded'
          ? await completeWithdrawal(dependencies, claimId)
          : await failWithdrawal(dependencies, claimId, failure);
    } catch (error) {
      if (!isLasting(error)) throw error;
      const described = describeError(error);
      logger.error({ claimId, error: described }, NOT_RECORDED);
      await noteNotRecorded(orm, 'withdrawal', claimId, { reason: described.summary });
      return null;
    }
    answered(claimId, response);
    // No response: something else ended the withdrawal in the meantime.
    if (response === null) return readEnd(claimId);
    return answer.status === 'succeeded' ? { outcome: 'succeeded' } : { outcome: 'failed', reason: failure };
  }

  /**
   * Applies an operator's decision. A definite answer from the network takes precedence.
   * @param token what to ask the network about; null if there is no need to ask
   * @param sending who signalled the decision; null if an operator's command recorded it, which has its audit entry already
   */
  async function resolve(
    claimId: string,
    decision: WithdrawalDecision,
    token: string | null,
    sending: Promise<string | null> | null,
  ): Promise<Resolved> {
    const answer = token === null ? null : await heard(liveNetwork, (it) => it.lookUpWithdrawal(token));
    const end = answer === null ? null : await follow(claimId, answer);
    if (end !== null) return { over: true, end };
    const known = { deadlineMs, sentBy: await sending };
    const { verdict, response } = await resolveWithdrawal(dependencies, claimId, decision, known).catch(
      async (error: unknown) => {
        if (!isLasting(error)) throw error;
        logger.error({ claimId, error: describeError(error) }, NOT_RECORDED);
        return { verdict: await refuseLastingly(orm, 'withdrawal', claimId), response: null };
      },
    );
    if (!verdict.over) return verdict;
    answered(claimId, response);
    return { over: true, end: await readEnd(claimId) };
  }

  return {
    requestWithdrawal,
    async applyWithdrawalResolution(claimId, decision) {
      const sending = signalSender('resolve', (input) => isSameDecision(input, decision));
      // It is awaited after the network has answered, and not at all if that decides.
      sending.catch(() => {});
      const pending = await readPendingWithdrawal(dependencies, claimId);
      return resolve(claimId, decision, pending?.asked.token ?? null, sending);
    },
    flagWithdrawalOverdue: (claimId) => flagOverdue(orm, 'withdrawal', { claimId, deadlineMs }),
  };
}
