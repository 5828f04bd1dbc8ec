import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import {
  beginStatusChange,
  completeStatusChange,
  refuseStatusChange,
} from '../commands/card-status/change-status.ts';
import type { CommandContext } from '../commands/command-context.ts';
import { readClaimResponse, type StoredResponse } from '../commands/idempotency/response.ts';
import type { CardNetwork } from '../domain/card-network.ts';
import { configured } from './ask-network.ts';

/**
 * How a change ended. `refused`: by our own rules, or by the network; the card is as it was. `forgotten`: its claim is gone.
 */
export interface StatusChangeEnd {
  outcome: 'applied' | 'refused' | 'refused_by_network' | 'forgotten';
}

export interface CardStatusActivities {
  /**
   * Begins the change, unless it has begun, asks the network for it, and records what it says.
   * @throws ApplicationFailure `CardBusy` while another change of the card is under way: try again.
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

/** The effect that `changeCardStatus` asks for. It can run again at any point and then does what was left to do. */
export function createCardStatusActivities(dependencies: CardStatusDependencies): CardStatusActivities {
  const { liveNetwork, answered, opened } = dependencies;
  return {
    async requestStatusChange(claimId) {
      const begun = await beginStatusChange(dependencies, claimId);
      if (begun.state === 'busy') throw cardBusy();
      if (begun.state === 'answered') {
        answered(claimId, begun.response);
        return endOf(claimId, begun.response);
      }
      opened?.(claimId);
      const { status } = await configured(liveNetwork).changeCardStatus(begun.asked);
      const end = status === 'applied' ? completeStatusChange : refuseStatusChange;
      const { response, topUpClaimIds } = await end(dependencies, claimId);
      answered(claimId, response);
      for (const topUpClaimId of topUpClaimIds) answered(topUpClaimId, null);
      if (response === null) return endOf(claimId, null);
      return { outcome: status === 'applied' ? 'applied' : 'refused_by_network' };
    },
  };

  /** How a change that is over has ended, by its response. @param stored null if another run stored it */
  async function endOf(claimId: string, stored: StoredResponse | null): Promise<StatusChangeEnd> {
    const response = stored ?? (await readClaimResponse(dependencies, claimId));
    if (response === null) return { outcome: 'forgotten' };
    return { outcome: response.status === 200 ? 'applied' : 'refused' };
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
