import type { IssuanceDecision } from '../domain/decision.ts';
import { CardNetworkUnavailable, type LookUpAnswer } from '../issuers/card-network.ts';
import { isLasting } from '../platform/db/is-retryable.ts';
import { describeError } from '../platform/process/describe-error.ts';
import type { StoredResponse } from '../requests/response.ts';
import { flagOverdue, noteNotRecorded, refuseLastingly } from './decision.ts';
import {
  acceptIssuance,
  completeIssuance,
  failIssuance,
  readIssuanceEnd,
  resolveIssuance,
} from './end-issuance.ts';
import { type AskedIssuance, beginIssuance, type FundingContext, readPendingIssuance } from './issue.ts';
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
  toEvidence,
} from './network-activities.ts';

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

export interface IssuanceDependencies extends FundingContext, OperationDependencies {
  issuanceDeadlineMs: number;
}

export function createIssuanceActivities(dependencies: IssuanceDependencies): IssuanceActivities {
  const {
    orm,
    liveNetwork,
    issuanceDeadlineMs: deadlineMs,
    answered,
    opened,
    logger,
    signalSender,
  } = dependencies;

  async function requestIssuance(
    claimId: string,
    isHeld = false,
    nextAskMs = FIRST_POLL_MS,
  ): Promise<NetworkProgress> {
    const pending = await beginOrRead(claimId, isHeld);
    if ('outcome' in pending) return pending;
    const { asked, decision, isFirst } = pending;
    const network = configured(liveNetwork);
    let answer: LookUpAnswer | null = null;
    try {
      answer = await askAndNote(orm, { claimId, isFirst, nextAskMs, deadlineMs }, () =>
        askOrLookUp(
          () => network.issueCard(asked),
          () => network.lookUpIssuance(asked.token),
        ),
      );
    } catch (error) {
      if (!(error instanceof CardNetworkUnavailable) || decision === null) throw error;
    }
    if (answer !== null) {
      const end = await follow(claimId, answer);
      if (end !== null) return end;
      answered(claimId, await acceptIssuance(dependencies, claimId));
    }
    // An operator's command may have died after it recorded a decision and before it signalled the workflow.
    if (decision === null) return 'accepted';
    const resolved = await resolve(claimId, decision, answer === null ? null : asked.token, null);
    return resolved.over ? resolved.end : 'accepted';
  }

  /** What to ask the network for, or how the issuance ended. */
  async function beginOrRead(
    claimId: string,
    isHeld: boolean,
  ): Promise<{ asked: AskedIssuance; decision: IssuanceDecision | null; isFirst: boolean } | FundingEnd> {
    const found = isHeld ? await readPendingIssuance(dependencies, claimId) : null;
    if (found !== null) return { ...found, isFirst: false };
    const begun = await beginIssuance(dependencies, claimId);
    if (begun.state === 'answered') {
      answered(claimId, begun.response);
      return begun.response === null ? readEnd(claimId) : refusedWith(begun.response);
    }
    opened?.(claimId);
    if (begun.asked !== null) return { asked: begun.asked, decision: null, isFirst: true };
    const held = await readPendingIssuance(dependencies, claimId);
    if (held !== null) return { ...held, isFirst: false };
    answered(claimId, null);
    return readEnd(claimId);
  }

  /**
   * How an issuance ended, according to its card; without a card, it was refused, and its response says why.
   */
  async function readEnd(claimId: string): Promise<FundingEnd> {
    const end = await readIssuanceEnd(dependencies, claimId);
    if (end === null) return endWithoutRow(dependencies, claimId);
    return end.failure === null ? { outcome: 'issued' } : { outcome: 'failed', reason: end.failure };
  }

  /**
   * Acts on the network's answer.
   * @returns null if the answer is not definite, or can't be recorded as things are: the issuance waits then
   *   as if the network had not decided, so that its deadline is reached and an operator can decide
   */
  async function follow(claimId: string, answer: LookUpAnswer): Promise<FundingEnd | null> {
    if (answer.status === 'accepted' || answer.status === 'unknown') return null;
    const failure = answer.status === 'declined' ? 'provider_declined' : 'issuance_failed';
    let response: StoredResponse | null;
    try {
      response =
        answer.status === 'issued'
          ? await completeIssuance(dependencies, claimId, answer)
          : await failIssuance(dependencies, claimId, failure);
    } catch (error) {
      if (!isLasting(error)) throw error;
      const described = describeError(error);
      logger.error({ claimId, error: described }, NOT_RECORDED);
      await noteNotRecorded(orm, 'card', claimId, {
        reason: described.summary,
        networkCardId: answer.status === 'issued' ? answer.networkCardId : undefined,
      });
      return null;
    }
    answered(claimId, response);
    // No response: something else ended the issuance in the meantime.
    if (response === null) return readEnd(claimId);
    return answer.status === 'issued' ? { outcome: 'issued' } : { outcome: 'failed', reason: failure };
  }

  /**
   * Applies an operator's decision. A definite answer from the network takes precedence.
   * @param token what to ask the network about; null if there is no need to ask
   * @param sending who signalled the decision; null if an operator's command recorded it, which has its audit
   * entry already
   */
  async function resolve(
    claimId: string,
    decision: IssuanceDecision,
    token: string | null,
    sending: Promise<string | null> | null,
  ): Promise<Resolved> {
    const answer = token === null ? null : await heard(liveNetwork, (it) => it.lookUpIssuance(token));
    const end = answer === null ? null : await follow(claimId, answer);
    if (end !== null) return { over: true, end };
    const known = { deadlineMs, evidence: toEvidence(answer), sentBy: await sending };
    const { verdict, response } = await resolveIssuance(dependencies, claimId, decision, known).catch(
      async (error: unknown) => {
        if (!isLasting(error)) throw error;
        logger.error({ claimId, error: describeError(error) }, NOT_RECORDED);
        return { verdict: await refuseLastingly(orm, 'card', claimId), response: null };
      },
    );
    if (!verdict.over) return verdict;
    answered(claimId, response);
    return { over: true, end: await readEnd(claimId) };
  }

  return {
    requestIssuance,
    async applyIssuanceResolution(claimId, decision) {
      const sending = signalSender('resolve', (input) => isSameDecision(input, decision));
      // It is awaited after the network has answered, and not at all if that decides.
      sending.catch(() => {});
      const pending = await readPendingIssuance(dependencies, claimId);
      return resolve(claimId, decision, pending?.asked.token ?? null, sending);
    },
    flagIssuanceOverdue: (claimId) => flagOverdue(orm, 'card', { claimId, deadlineMs }),
  };
}
