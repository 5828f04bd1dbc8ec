import type { CardNetwork } from '../adapters/card-network/card-network.ts';
import { acceptTopUp } from '../commands/accept-top-up.ts';
import type { CommandContext } from '../commands/command-context.ts';
import { failTopUp } from '../commands/fail-top-up.ts';
import { flagTopUpOverdue } from '../commands/flag-top-up-overdue.ts';
import { openTopUp } from '../commands/open-top-up.ts';
import { readPendingTopUp } from '../commands/pending-top-up.ts';
import type { Opening } from '../commands/run-opening.ts';
import { succeedTopUp } from '../commands/succeed-top-up.ts';
import { askOrLookUp, configured } from './ask-network.ts';
import type { SettlementState } from './settlement-state.ts';

export interface CardTopUpActivities {
  openTopUp(claimId: string): Promise<Opening>;
  /** @throws CardNetworkUnavailable where the network gives no definite answer. */
  settleTopUp(claimId: string): Promise<SettlementState>;
  settleTopUpByHand(claimId: string, outcome: 'succeeded' | 'failed'): Promise<void>;
  flagTopUpOverdue(claimId: string): Promise<void>;
}

export interface CardTopUpDependencies extends CommandContext {
  /** Live mode's network; null where none is configured, and then nothing is ever held for it. */
  liveNetwork: CardNetwork | null;
  /** Called when a claim has its answer, for whoever waits for it; does not fail. */
  answered(claimId: string): void;
}

/** The effects that `topUpCard` asks for. Each can be run again at any point and then does what was left to do. */
export function createCardTopUpActivities(dependencies: CardTopUpDependencies): CardTopUpActivities {
  return {
    async openTopUp(claimId) {
      const opening = await openTopUp(dependencies, claimId);
      if (opening === 'answered') dependencies.answered(claimId);
      return opening;
    },
    flagTopUpOverdue: (claimId) => flagTopUpOverdue(dependencies, claimId),

    async settleTopUp(claimId) {
      const state = await settle(dependencies, claimId);
      dependencies.answered(claimId);
      return state;
    },

    async settleTopUpByHand(claimId, outcome) {
      if (outcome === 'failed') await failTopUp(dependencies, claimId, 'operator_failed');
      else await succeedTopUp(dependencies, claimId);
      dependencies.answered(claimId);
    },
  };
}

async function settle(dependencies: CardTopUpDependencies, claimId: string): Promise<SettlementState> {
  const pending = await readPendingTopUp(dependencies, claimId);
  if (pending === null) return 'settled';
  const network = configured(dependencies.liveNetwork);
  const answer = await askOrLookUp(
    () => network.topUpCard(pending),
    () => network.lookUpTopUp(pending.token),
  );
  switch (answer.status) {
    case 'succeeded':
      await succeedTopUp(dependencies, claimId);
      return 'settled';
    case 'declined':
      await failTopUp(dependencies, claimId, 'provider_declined');
      return 'settled';
    case 'failed':
      await failTopUp(dependencies, claimId, 'topup_failed');
      return 'settled';
    case 'accepted':
      await acceptTopUp(dependencies, claimId);
      return 'accepted';
  }
}
