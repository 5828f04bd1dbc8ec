import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import {
  beginStatusChange,
  completeStatusChange,
  readStatusChangeRequest,
  refuseStatusChange,
} from '../commands/card-status/change-status.ts';
import type { CommandContext } from '../commands/command-context.ts';
import { readResponseStatus, type StoredResponse } from '../commands/idempotency/response.ts';
import type { CardNetwork } from '../domain/card-network.ts';
import { configured } from './ask-network.ts';

/**
 * How a change ended. `refused`: by our own rules, or by the network; the card is as it was. `forgotten`: its claim is gone.
 */
export interface StatusChangeEnd {
  outcome: 'applied' | 'refused' | 'refused_by_network' | 'forgotten';
}

export interface CardStatusActivities {
  /** @throws ApplicationFailure `CardBusy` while another change of the card is under way: try again. */
  beginStatusChange(claimId: string): Promise<'begun' | StatusChangeEnd>;
  /**
   * Asks the network for the change and records what it says.
   * @throws CardNetworkUnavailable if the network gives no definite answer.
   */
  requestStatusChange(claimId: string): Promise<StatusChangeEnd>;
}

export interface CardStatusDependencies extends CommandContext {
  /** Live mode's network; null if none is configured. */
  liveNetwork: CardNetwork | null;
  /**
   * Called when a claim has its response, for whoever waits for it; does not fail.
   * @param response what this process has just stored, if it is at hand
   */
  answered(claimId: string, response: StoredResponse | null): void;
  /** Called when the first step is made and the network is asked next; does not fail. */
  opened?(claimId: string): void;
}

/** The effects that `changeCardStatus` asks for. Each can run again at any point and then does what was left to do. */
export function createCardStatusActivities(dependencies: CardStatusDependencies): CardStatusActivities {
  return {
    async beginStatusChange(claimId) {
      const beginning = await beginStatusChange(dependencies, claimId);
      if (beginning === 'busy') throw cardBusy();
      if (beginning === 'answered') {
        dependencies.answered(claimId, null);
        return endOf(claimId);
      }
      dependencies.opened?.(claimId);
      return beginning;
    },

    async requestStatusChange(claimId) {
      const request = await readStatusChangeRequest(dependencies, claimId);
      if (request === null) return endOf(claimId);
      const { status } = await configured(dependencies.liveNetwork).changeCardStatus(request);
      const end = status === 'applied' ? completeStatusChange : refuseStatusChange;
      for (const answered of await end(dependencies, claimId)) dependencies.answered(answered, null);
      return { outcome: status === 'applied' ? 'applied' : 'refused_by_network' };
    },
  };

  /** How a change that is over has ended, by its response. */
  async function endOf(claimId: string): Promise<StatusChangeEnd> {
    const status = await readResponseStatus(dependencies, claimId);
    if (status === null) return { outcome: 'forgotten' };
    return { outcome: status === 200 ? 'applied' : 'refused' };
  }
}

/** Nothing is wrong, so it is neither logged nor counted as a failure. */
function cardBusy(): ApplicationFailure {
  return ApplicationFailure.create({
    type: 'CardBusy',
    message: 'another change of the card is under way at the network',
    category: ApplicationFailureCategory.BENIGN,
  });
}
