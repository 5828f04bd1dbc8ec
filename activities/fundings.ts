import type { Logger } from 'pino';
import { flagOverdue, noteNotRecorded, refuseLastingly } from '../commands/funding/decision.ts';
import {
  acceptFunding,
  beginFunding,
  completeFunding,
  type FundingContext,
  type FundingKind,
  type FundingRow,
  failFunding,
  readFundingEnd,
} from '../commands/funding/funding.ts';
import { type AskedIssuance, ISSUANCE, readPendingIssuance } from '../commands/funding/issuance.ts';
import { applyResolution } from '../commands/funding/resolution.ts';
import { type AskedTopUp, readPendingTopUp, TOPUP } from '../commands/funding/topup.ts';
import { readClaimResponse, type StoredResponse } from '../commands/idempotency/response.ts';
import { isLasting } from '../db/is-retryable.ts';
import type { IssuedCard } from '../domain/card.ts';
import { type CardNetwork, CardNetworkUnavailable, type LookUpAnswer } from '../domain/card-network.ts';
import type { Decision, IssuanceDecision, TopUpDecision, Verdict } from '../domain/decision.ts';
import { describeError } from '../process/describe-error.ts';
import { askOrLookUp, configured, evidenceOf, heard } from './ask-network.ts';

/**
 * How an operation ended. `refused`: our rules refused it before the network was asked. `failed`: the network's definite no,
 * or an operator's decision. The reason is a code.
 */
export interface FundingEnd {
  outcome: 'issued' | 'succeeded' | 'failed' | 'refused';
  reason?: string;
}

/**
 * `accepted`: the network is working on it, and the request has been answered with 202. Otherwise, the operation has ended.
 */
export type NetworkProgress = 'accepted' | FundingEnd;

/** The result of an operator's decision. */
export type Resolved = { over: true; end: FundingEnd } | Exclude<Verdict, { over: true }>;

/**
 * The activities of `issueCard` and `topUpCard`. Each can be repeated at any point, and then does only what is left to do.
 */
export interface FundingActivities {
  /**
   * Holds the money of an issuance, unless it is held already, asks the network for the card, and acts on its answer.
   * @param isHeld whether an earlier run has probably held it, so that the hold is looked up first
   * @throws CardNetworkUnavailable if the network gives no definite answer; the money stays held
   */
  requestIssuance(claimId: string, isHeld?: boolean): Promise<NetworkProgress>;
  applyIssuanceResolution(claimId: string, decision: IssuanceDecision): Promise<Resolved>;
  /** @returns how long the network may still take, in milliseconds; 0 if the issuance is marked as overdue. */
  flagIssuanceOverdue(claimId: string): Promise<number>;
  /** Like {@link requestIssuance}, for a top-up. */
  requestTopUp(claimId: string, isHeld?: boolean): Promise<NetworkProgress>;
  applyTopUpResolution(claimId: string, decision: TopUpDecision): Promise<Resolved>;
  flagTopUpOverdue(claimId: string): Promise<number>;
}

export interface FundingDependencies extends FundingContext {
  /** Live mode's network; null if none is configured, in which case no money is ever held for it. */
  liveNetwork: CardNetwork | null;
  issuanceDeadlineMs: number;
  topUpDeadlineMs: number;
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

export function createFundingActivities(dependencies: FundingDependencies): FundingActivities {
  const { issuanceDeadlineMs, topUpDeadlineMs } = dependencies;
  const issuances = networkFunding(dependencies, ISSUANCES, issuanceDeadlineMs);
  const topUps = networkFunding(dependencies, TOP_UPS, topUpDeadlineMs);
  return {
    requestIssuance: issuances.request,
    applyIssuanceResolution: issuances.applyResolution,
    flagIssuanceOverdue: issuances.flagOverdue,
    requestTopUp: topUps.request,
    applyTopUpResolution: topUps.applyResolution,
    flagTopUpOverdue: topUps.flagOverdue,
  };
}

/** How to ask the network for one kind of funding, and what its answers mean. */
interface AtNetwork<Asked extends { token: string }, Answer> {
  kind: FundingKind<FundingRow, Asked>;
  readPending(
    context: FundingContext,
    claimId: string,
  ): Promise<{ asked: Asked; decision: Decision | null } | null>;
  ask(network: CardNetwork, asked: Asked): Promise<Answer>;
  /** @param token the id of the operation's row, which the network was asked with */
  lookUp(network: CardNetwork, token: string): Promise<Answer | { status: 'unknown' }>;
  /** The outcome that a definite answer means; null if the answer is not definite. */
  decided(answer: Answer | { status: 'unknown' }): { loaded: object } | { failure: string } | null;
  /** The name of the successful outcome. */
  success: 'issued' | 'succeeded';
  /** What the answer says about a card that an operator decides on. */
  evidence(answer: Answer | { status: 'unknown' } | null): unknown;
}

const ISSUANCES: AtNetwork<AskedIssuance, LookUpAnswer> = {
  kind: ISSUANCE,
  readPending: readPendingIssuance,
  ask: (network, asked) => network.issueCard(asked),
  lookUp: (network, token) => network.lookUpIssuance(token),
  decided(answer) {
    switch (answer.status) {
      case 'issued':
        return { loaded: answer };
      case 'declined':
        return { failure: 'provider_declined' };
      case 'failed':
        return { failure: 'issuance_failed' };
      default:
        return null;
    }
  },
  success: 'issued',
  evidence: evidenceOf,
};

const TOP_UPS: AtNetwork<AskedTopUp, Awaited<ReturnType<CardNetwork['lookUpTopUp']>>> = {
  kind: TOPUP,
  readPending: readPendingTopUp,
  ask: (network, asked) => network.topUpCard(asked),
  lookUp: (network, token) => network.lookUpTopUp(token),
  decided(answer) {
    switch (answer.status) {
      case 'succeeded':
        return { loaded: {} };
      case 'declined':
        return { failure: 'provider_declined' };
      case 'failed':
        return { failure: 'topup_failed' };
      default:
        return null;
    }
  },
  success: 'succeeded',
  evidence: () => null,
};

const NOT_RECORDED =
  'an operation\'s end could not be recorded, so it stays pending; "operator attention list" has it, with what to do';

/** A refusal, by its code. The rest of the response is for the partner. */
function refusedWith({ body }: StoredResponse): FundingEnd {
  const { code: reason } = (JSON.parse(body) as { error: { code: string } }).error;
  return { outcome: reason === 'provider_declined' ? 'failed' : 'refused', reason };
}

function networkFunding<Asked extends { token: string }, Answer extends { status: string }>(
  dependencies: FundingDependencies,
  at: AtNetwork<Asked, Answer>,
  deadlineMs: number,
) {
  const { orm, liveNetwork, answered, opened, logger, signalSender } = dependencies;
  const { kind } = at;

  async function request(claimId: string, isHeld = false): Promise<NetworkProgress> {
    const pending = await pendingOf(claimId, isHeld);
    if ('outcome' in pending) return pending;
    const { asked, decision } = pending;
    const network = configured(liveNetwork);
    let answer: Answer | { status: 'unknown' } | null = null;
    try {
      answer = await askOrLookUp(
        () => at.ask(network, asked),
        () => at.lookUp(network, asked.token),
      );
    } catch (error) {
      if (!(error instanceof CardNetworkUnavailable) || decision === null) throw error;
    }
    if (answer !== null) {
      const end = await follow(claimId, answer);
      if (end !== null) return end;
      answered(claimId, await acceptFunding(kind, dependencies, claimId));
    }
    // An operator's command may have died after it recorded a decision and before it signalled the workflow.
    if (decision === null) return 'accepted';
    const resolved = await apply(claimId, decision, answer === null ? null : asked.token, NOBODY);
    return resolved.over ? resolved.end : 'accepted';
  }

  /** What to ask the network for, or how the operation ended. */
  async function pendingOf(claimId: string, isHeld: boolean) {
    const found = isHeld ? await at.readPending(dependencies, claimId) : null;
    if (found !== null) return found;
    const begun = await beginFunding(kind, dependencies, claimId);
    if (begun.state === 'answered') {
      answered(claimId, begun.response);
      return begun.response === null ? endOf(claimId) : refusedWith(begun.response);
    }
    opened?.(claimId);
    if (begun.asked !== null) return { asked: begun.asked, decision: null };
    const held = await at.readPending(dependencies, claimId);
    if (held !== null) return held;
    answered(claimId, null);
    return endOf(claimId);
  }

  /** How an operation ended, according to its row; without a row, it was refused, and its response says why. */
  async function endOf(claimId: string): Promise<FundingEnd> {
    const row = await readFundingEnd(dependencies, claimId);
    if (row === null) {
      const response = await readClaimResponse(dependencies, claimId);
      return response === null ? { outcome: 'refused' } : refusedWith(response);
    }
    return row.failure === null ? { outcome: at.success } : { outcome: 'failed', reason: row.failure };
  }

  /**
   * Acts on the network's answer.
   * @returns null if the answer is not definite, or can't be recorded as things are: the operation waits then as if the network
   *   had not decided, so that its deadline is reached and an operator can decide
   */
  async function follow(claimId: string, answer: Answer | { status: 'unknown' }): Promise<FundingEnd | null> {
    const decided = at.decided(answer);
    if (decided === null) return null;
    let response: StoredResponse | null;
    try {
      response =
        'loaded' in decided
          ? await completeFunding(kind, dependencies, claimId, decided.loaded)
          : await failFunding(kind, dependencies, claimId, decided.failure);
    } catch (error) {
      if (!isLasting(error)) throw error;
      const described = describeError(error);
      logger.error({ claimId, error: described }, NOT_RECORDED);
      const { networkCardId } = ('loaded' in decided ? decided.loaded : {}) as Partial<IssuedCard>;
      await noteNotRecorded(orm, kind.table, claimId, {
        reason: described.summary,
        ...(networkCardId && { networkCardId }),
      });
      return null;
    }
    answered(claimId, response);
    // No response: something else ended the operation in the meantime.
    if (response === null) return endOf(claimId);
    return 'loaded' in decided ? { outcome: at.success } : { outcome: 'failed', reason: decided.failure };
  }

  /**
   * Applies an operator's decision. A definite answer from the network takes precedence.
   * @param token what to ask the network about; null if there is no need to ask
   * @param sending who signalled it; null if an operator's command recorded it, or nobody knows
   */
  async function apply(
    claimId: string,
    decision: Decision,
    token: string | null,
    sending: Promise<string | null>,
  ): Promise<Resolved> {
    const answer = token === null ? null : await heard(liveNetwork, (network) => at.lookUp(network, token));
    const end = answer === null ? null : await follow(claimId, answer);
    if (end !== null) return { over: true, end };
    const known = { deadlineMs, evidence: at.evidence(answer), sentBy: await sending };
    const { verdict, response } = await applyResolution(kind, dependencies, claimId, decision, known).catch(
      async (error: unknown) => {
        if (!isLasting(error)) throw error;
        logger.error({ claimId, error: describeError(error) }, NOT_RECORDED);
        return { verdict: await refuseLastingly(orm, kind.table, claimId), response: null };
      },
    );
    if (!verdict.over) return verdict;
    answered(claimId, response);
    return { over: true, end: await endOf(claimId) };
  }

  return {
    request,
    async applyResolution(claimId: string, decision: Decision) {
      const sending = signalSender('resolve', (input) => isSameDecision(input, decision));
      // It is awaited after the network has answered, and not at all if that decides.
      sending.catch(() => {});
      const pending = await at.readPending(dependencies, claimId);
      return apply(claimId, decision, pending?.asked.token ?? null, sending);
    },
    flagOverdue: (claimId: string) => flagOverdue(orm, kind.table, { claimId, deadlineMs }),
  };
}

/** A recorded decision has its audit entry already. */
const NOBODY = Promise.resolve(null);

/** A signal can contain anything. */
function isSameDecision(sent: unknown, { outcome, networkCardId }: Decision): boolean {
  const told = (sent ?? {}) as Partial<Record<keyof Decision, unknown>>;
  return told.outcome === outcome && (told.networkCardId ?? undefined) === networkCardId;
}
