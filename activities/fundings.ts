import { flagOverdue } from '../commands/funding/decision.ts';
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
import { type CardNetwork, CardNetworkUnavailable, type LookUpAnswer } from '../domain/card-network.ts';
import type { Decision, IssuanceDecision, TopUpDecision, Verdict } from '../domain/decision.ts';
import { askOrLookUp, configured, evidenceOf, heard } from './ask-network.ts';

/**
 * How an operation ended. `refused`: by our own rules, before the network was asked. `failed`: by the network's definite
 * no, or by an operator. The reason is a code.
 */
export interface FundingEnd {
  outcome: 'issued' | 'succeeded' | 'failed' | 'refused';
  reason?: string;
}

/** `accepted`: the network works on it, and its request has been answered with 202. Otherwise the operation is over. */
export type NetworkProgress = 'accepted' | FundingEnd;

/** What became of a decision by hand. */
export type Resolved = { over: true; end: FundingEnd } | Exclude<Verdict, { over: true }>;

/** The effects that `issueCard` and `topUpCard` ask for. Each can be run again at any point and then does what was left to do. */
export interface FundingActivities {
  /**
   * Holds the money of an issuance, unless it is held already, asks the network for the card, and acts on its answer.
   * @param isHeld whether an earlier run has probably held it: then that is looked for first
   * @throws CardNetworkUnavailable if the network gives no definite answer: the money is held.
   */
  requestIssuance(claimId: string, isHeld?: boolean): Promise<NetworkProgress>;
  applyIssuanceResolution(claimId: string, decision: IssuanceDecision): Promise<Resolved>;
  /** @returns how long the network may still take, in milliseconds; 0 if the issuance is marked as overdue. */
  flagIssuanceOverdue(claimId: string): Promise<number>;
  /** As of an issuance. */
  requestTopUp(claimId: string, isHeld?: boolean): Promise<NetworkProgress>;
  applyTopUpResolution(claimId: string, decision: TopUpDecision): Promise<Resolved>;
  flagTopUpOverdue(claimId: string): Promise<number>;
}

export interface FundingDependencies extends FundingContext {
  /** Live mode's network; null if none is configured, and then nothing is ever held for it. */
  liveNetwork: CardNetwork | null;
  issuanceDeadlineMs: number;
  topUpDeadlineMs: number;
  /**
   * Called when a claim has its response, for whoever waits for it; does not fail.
   * @param response what this process has just stored; null if it was stored before
   */
  answered(claimId: string, response: StoredResponse | null): void;
  /** Called when the money is held and the network is asked next; does not fail. */
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

/** How the network is asked for a kind of funding, and what its answers mean. */
interface AtNetwork<Asked extends { token: string }, Answer> {
  kind: FundingKind<FundingRow, Asked>;
  readPending(
    context: FundingContext,
    claimId: string,
  ): Promise<{ asked: Asked; decision: Decision | null } | null>;
  ask(network: CardNetwork, asked: Asked): Promise<Answer>;
  /** @param token what the network was asked under: the id of the row */
  lookUp(network: CardNetwork, token: string): Promise<Answer | { status: 'unknown' }>;
  /** What a definite answer says; null if it is none. */
  decided(answer: Answer | { status: 'unknown' }): { loaded: object } | { failure: string } | null;
  /** How one that succeeded is called. */
  success: 'issued' | 'succeeded';
  /** What it says of a card that an operator decides about. */
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

/** A refusal names its code; the rest of the response is the partner's. */
function refusedWith({ body }: StoredResponse): FundingEnd {
  const { code: reason } = (JSON.parse(body) as { error: { code: string } }).error;
  return { outcome: reason === 'provider_declined' ? 'failed' : 'refused', reason };
}

function networkFunding<Asked extends { token: string }, Answer extends { status: string }>(
  dependencies: FundingDependencies,
  at: AtNetwork<Asked, Answer>,
  deadlineMs: number,
) {
  const { orm, liveNetwork, answered, opened } = dependencies;
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
    // An operator's command may have died after it recorded a decision, and before it told the workflow.
    if (decision === null) return 'accepted';
    const resolved = await apply(claimId, decision, answer === null ? null : asked.token);
    return resolved.over ? resolved.end : 'accepted';
  }

  /** What the network is to be asked for; or how the operation ended. */
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

  /** How an operation ended, by its row; if it left none, by its response, which is a refusal. */
  async function endOf(claimId: string): Promise<FundingEnd> {
    const row = await readFundingEnd(dependencies, claimId);
    if (row === null) {
      const response = await readClaimResponse(dependencies, claimId);
      return response === null ? { outcome: 'refused' } : refusedWith(response);
    }
    return row.failure === null ? { outcome: at.success } : { outcome: 'failed', reason: row.failure };
  }

  /** Acts on what the network says. @returns null if it is not definite. */
  async function follow(claimId: string, answer: Answer | { status: 'unknown' }): Promise<FundingEnd | null> {
    const decided = at.decided(answer);
    if (decided === null) return null;
    const response =
      'loaded' in decided
        ? await completeFunding(kind, dependencies, claimId, decided.loaded)
        : await failFunding(kind, dependencies, claimId, decided.failure);
    answered(claimId, response);
    // Without a response of its own, something else may have ended it meanwhile.
    if (response === null) return endOf(claimId);
    return 'loaded' in decided ? { outcome: at.success } : { outcome: 'failed', reason: decided.failure };
  }

  /**
   * Applies what somebody decided. A definite answer of the network goes before it.
   * @param token what the network is asked about; null if it need not be asked
   */
  async function apply(claimId: string, decision: Decision, token: string | null): Promise<Resolved> {
    const answer = token === null ? null : await heard(liveNetwork, (network) => at.lookUp(network, token));
    const end = answer === null ? null : await follow(claimId, answer);
    if (end !== null) return { over: true, end };
    const known = { deadlineMs, evidence: at.evidence(answer) };
    const { verdict, response } = await applyResolution(kind, dependencies, claimId, decision, known);
    if (!verdict.over) return verdict;
    answered(claimId, response);
    return { over: true, end: await endOf(claimId) };
  }

  return {
    request,
    async applyResolution(claimId: string, decision: Decision) {
      const pending = await at.readPending(dependencies, claimId);
      return apply(claimId, decision, pending?.asked.token ?? null);
    },
    flagOverdue: (claimId: string) => flagOverdue(orm, kind.table, { claimId, deadlineMs }),
  };
}
