import type { CommandContext } from '../commands/command-context.ts';
import { acceptTopUp } from '../commands/funding/accept-top-up.ts';
import { flagOverdue } from '../commands/funding/decision.ts';
import { failTopUp } from '../commands/funding/fail-top-up.ts';
import { openTopUp } from '../commands/funding/open-top-up.ts';
import { readPendingTopUp } from '../commands/funding/pending-top-up.ts';
import type { Opening } from '../commands/funding/run-opening.ts';
import { settleTopUpByHand } from '../commands/funding/settle-top-up-by-hand.ts';
import { succeedTopUp } from '../commands/funding/succeed-top-up.ts';
import type { CardNetwork } from '../domain/card-network.ts';
import type { TopUpDecision, Verdict } from '../domain/decision.ts';
import { siblingId } from '../domain/ids.ts';
import { askOrLookUp, configured, heard } from './ask-network.ts';
import { type SettlementState, settleByAnswer } from './settlement-state.ts';

export interface CardTopUpActivities {
  openTopUp(claimId: string): Promise<Opening>;
  /** @throws CardNetworkUnavailable where the network gives no definite answer. */
  settleTopUp(claimId: string): Promise<SettlementState>;
  /** @param decided also the outcome alone, as workflows begun by an earlier version pass it */
  settleTopUpByHand(claimId: string, decided: TopUpDecision | TopUpDecision['outcome']): Promise<Verdict>;
  /** @returns how long the network may still take, in milliseconds; 0 where the top-up is marked as overdue. */
  flagTopUpOverdue(claimId: string): Promise<number>;
}

export interface CardTopUpDependencies extends CommandContext {
  /** Live mode's network; null where none is configured, and then nothing is ever held for it. */
  liveNetwork: CardNetwork | null;
  topUpDeadlineMs: number;
  /** Called when a claim has its answer, for whoever waits for it; does not fail. */
  answered(claimId: string): void;
  /** Called when the first step is made and the network is asked next; does not fail. */
  opened?(claimId: string): void;
}

/** The effects that `topUpCard` asks for. Each can be run again at any point and then does what was left to do. */
export function createCardTopUpActivities(dependencies: CardTopUpDependencies): CardTopUpActivities {
  return {
    async openTopUp(claimId) {
      const opening = await openTopUp(dependencies, claimId);
      if (opening === 'answered') dependencies.answered(claimId);
      else dependencies.opened?.(claimId);
      return opening;
    },
    flagTopUpOverdue: (claimId) =>
      flagOverdue(dependencies.orm.em.fork(), {
        ...{ table: 'topup', status: 'pending', id: siblingId('topup', claimId) },
        deadlineMs: dependencies.topUpDeadlineMs,
      }),

    async settleTopUp(claimId) {
      const state = await settle(dependencies, claimId);
      dependencies.answered(claimId);
      return state;
    },

    async settleTopUpByHand(claimId, decided) {
      const decision = typeof decided === 'string' ? { outcome: decided } : decided;
      const verdict = await settleByHand(dependencies, claimId, decision);
      if (verdict.settled) dependencies.answered(claimId);
      return verdict;
    },
  };
}

async function settle(dependencies: CardTopUpDependencies, claimId: string): Promise<SettlementState> {
  const pending = await readPendingTopUp(dependencies, claimId);
  if (pending === null) return 'settled';
  const { asked, decision } = pending;
  const network = configured(dependencies.liveNetwork);
  const lookUp = () => network.lookUpTopUp(asked.token);
  return settleByAnswer({
    ask: () => askOrLookUp(() => network.topUpCard(asked), lookUp),
    follow: (answer) => followed(dependencies, claimId, answer),
    accept: () => acceptTopUp(dependencies, claimId),
    decide: decision && ((state) => settleByHand(dependencies, claimId, decision, state)),
  });
}

/** Carries out what somebody decided. A definite answer of the network goes before it. */
async function settleByHand(
  dependencies: CardTopUpDependencies,
  claimId: string,
  decision: TopUpDecision,
  network: 'away' | 'answers' = 'answers',
): Promise<Verdict> {
  const { liveNetwork, topUpDeadlineMs } = dependencies;
  const token = siblingId('topup', claimId);
  const answer = network === 'away' ? null : await heard(liveNetwork, (live) => live.lookUpTopUp(token));
  if (answer !== null && (await followed(dependencies, claimId, answer))) return { settled: true };
  return settleTopUpByHand(dependencies, claimId, decision, topUpDeadlineMs);
}

/** Acts on what the network says. @returns false where it is not definite. */
async function followed(
  dependencies: CardTopUpDependencies,
  claimId: string,
  answer: Awaited<ReturnType<CardNetwork['lookUpTopUp']>>,
): Promise<boolean> {
  switch (answer.status) {
    case 'succeeded':
      await succeedTopUp(dependencies, claimId);
      return true;
    case 'declined':
      await failTopUp(dependencies, claimId, 'provider_declined');
      return true;
    case 'failed':
      await failTopUp(dependencies, claimId, 'topup_failed');
      return true;
    default:
      return false;
  }
}
