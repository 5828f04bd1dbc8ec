import type { IssuanceContext } from '../commands/command-context.ts';
import { acceptIssuance } from '../commands/funding/accept-issuance.ts';
import { activateCard } from '../commands/funding/activate-card.ts';
import { flagOverdue } from '../commands/funding/decision.ts';
import { failIssuance } from '../commands/funding/fail-issuance.ts';
import { openIssuance } from '../commands/funding/open-issuance.ts';
import { readPendingIssuance } from '../commands/funding/pending-issuance.ts';
import type { Opening } from '../commands/funding/run-opening.ts';
import { settleIssuanceByHand } from '../commands/funding/settle-issuance-by-hand.ts';
import type { CardNetwork, LookUpAnswer } from '../domain/card-network.ts';
import type { IssuanceDecision, Verdict } from '../domain/decision.ts';
import { siblingId } from '../domain/ids.ts';
import { askOrLookUp, cardOf, configured, heard } from './ask-network.ts';
import { type SettlementState, settleByAnswer } from './settlement-state.ts';

export interface CardIssuanceActivities {
  openIssuance(claimId: string): Promise<Opening>;
  /** @throws CardNetworkUnavailable where the network gives no definite answer. */
  settleIssuance(claimId: string): Promise<SettlementState>;
  /** @param decided also the outcome alone, as workflows begun by an earlier version pass it */
  settleIssuanceByHand(
    claimId: string,
    decided: IssuanceDecision | IssuanceDecision['outcome'],
  ): Promise<Verdict>;
  /** @returns how long the network may still take, in milliseconds; 0 where the issuance is marked as overdue. */
  flagIssuanceOverdue(claimId: string): Promise<number>;
}

export interface CardIssuanceDependencies extends IssuanceContext {
  /** Live mode's network; null where none is configured, and then nothing is ever held for it. */
  liveNetwork: CardNetwork | null;
  issuanceDeadlineMs: number;
  /** Called when a claim has its answer, for whoever waits for it; does not fail. */
  answered(claimId: string): void;
  /** Called when the first step is made and the network is asked next; does not fail. */
  opened?(claimId: string): void;
}

/** The effects that `issueCard` asks for. Each can be run again at any point and then does what was left to do. */
export function createCardIssuanceActivities(dependencies: CardIssuanceDependencies): CardIssuanceActivities {
  return {
    async openIssuance(claimId) {
      const opening = await openIssuance(dependencies, claimId);
      if (opening === 'answered') dependencies.answered(claimId);
      else dependencies.opened?.(claimId);
      return opening;
    },
    flagIssuanceOverdue: (claimId) =>
      flagOverdue(dependencies.orm.em.fork(), {
        ...{ table: 'card', status: 'funding_pending', id: siblingId('card', claimId) },
        deadlineMs: dependencies.issuanceDeadlineMs,
      }),

    async settleIssuance(claimId) {
      const state = await settle(dependencies, claimId);
      dependencies.answered(claimId);
      return state;
    },

    async settleIssuanceByHand(claimId, decided) {
      const decision = typeof decided === 'string' ? { outcome: decided } : decided;
      const verdict = await settleByHand(dependencies, claimId, decision);
      if (verdict.settled) dependencies.answered(claimId);
      return verdict;
    },
  };
}

async function settle(dependencies: CardIssuanceDependencies, claimId: string): Promise<SettlementState> {
  const pending = await readPendingIssuance(dependencies, claimId);
  if (pending === null) return 'settled';
  const { asked, decision } = pending;
  const network = configured(dependencies.liveNetwork);
  const lookUp = () => network.lookUpIssuance(asked.token);
  return settleByAnswer({
    ask: () => askOrLookUp(() => network.issueCard(asked), lookUp),
    follow: (answer) => followed(dependencies, claimId, answer),
    accept: () => acceptIssuance(dependencies, claimId),
    decide: decision && ((state) => settleByHand(dependencies, claimId, decision, state)),
  });
}

/** Carries out what somebody decided. A definite answer of the network goes before it. */
async function settleByHand(
  dependencies: CardIssuanceDependencies,
  claimId: string,
  decision: IssuanceDecision,
  network: 'away' | 'answers' = 'answers',
): Promise<Verdict> {
  const { liveNetwork, issuanceDeadlineMs } = dependencies;
  const token = siblingId('card', claimId);
  const answer = network === 'away' ? null : await heard(liveNetwork, (live) => live.lookUpIssuance(token));
  if (answer !== null && (await followed(dependencies, claimId, answer))) return { settled: true };
  return settleIssuanceByHand(dependencies, claimId, decision, cardOf(answer), issuanceDeadlineMs);
}

/** Acts on what the network says. @returns false where it is not definite. */
async function followed(
  dependencies: CardIssuanceDependencies,
  claimId: string,
  answer: LookUpAnswer,
): Promise<boolean> {
  switch (answer.status) {
    case 'issued':
      await activateCard(dependencies, claimId, answer);
      return true;
    case 'declined':
      await failIssuance(dependencies, claimId, 'provider_declined');
      return true;
    case 'failed':
      await failIssuance(dependencies, claimId, 'issuance_failed');
      return true;
    default:
      return false;
  }
}
