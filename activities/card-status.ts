import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { CardNetwork } from '../adapters/card-network/card-network.ts';
import { openStatusChange } from '../commands/card-status/open-status-change.ts';
import { readPendingStatusChange } from '../commands/card-status/pending-status-change.ts';
import { settleStatusChange } from '../commands/card-status/settle-status-change.ts';
import type { CommandContext } from '../commands/command-context.ts';
import { configured } from './ask-network.ts';

export interface CardStatusActivities {
  /** @throws ApplicationFailure `CardBusy` while another change of the card is under way: to be tried again. */
  openStatusChange(claimId: string): Promise<'opened' | 'answered'>;
  /** @throws CardNetworkUnavailable where the network gives no definite answer. */
  applyStatusChange(claimId: string): Promise<'answered'>;
}

export interface CardStatusDependencies extends CommandContext {
  /** Live mode's network; null where none is configured. */
  liveNetwork: CardNetwork | null;
  /** Called when a claim has its answer, for whoever waits for it; does not fail. */
  answered(claimId: string): void;
  /** Called when the first step is made and the network is asked next; does not fail. */
  opened?(claimId: string): void;
}

/** The effects that `changeCardStatus` asks for. Each can be run again at any point and then does what was left to do. */
export function createCardStatusActivities(dependencies: CardStatusDependencies): CardStatusActivities {
  return {
    async openStatusChange(claimId) {
      const opening = await openStatusChange(dependencies, claimId);
      if (opening === 'busy') throw cardBusy();
      if (opening === 'answered') dependencies.answered(claimId);
      else dependencies.opened?.(claimId);
      return opening;
    },

    async applyStatusChange(claimId) {
      const pending = await readPendingStatusChange(dependencies, claimId);
      if (pending === null) return 'answered';
      const { status } = await configured(dependencies.liveNetwork).changeCardStatus(pending);
      const claims = await settleStatusChange(dependencies, claimId, status);
      claims.forEach(dependencies.answered);
      return 'answered';
    },
  };
}

/** Nothing is wrong, so it is neither logged nor counted as a failure. */
function cardBusy(): ApplicationFailure {
  return ApplicationFailure.create({
    type: 'CardBusy',
    message: 'another change of the card is under way at the network',
    category: ApplicationFailureCategory.BENIGN,
  });
}
