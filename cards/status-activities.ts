import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { CardNetwork } from '../issuers/card-network.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { readClaimResponse, type StoredResponse } from '../requests/response.ts';
import { beginStatusChange, completeStatusChange, refuseStatusChange } from './change-status.ts';
import { askAndNote, configured } from './network-activities.ts';

/**
 * How a change ended. `refused`: our rules or the network refused it, and the card is unchanged. `forgotten`:
 * its claim was deleted.
 */
export interface StatusChangeEnd {
  outcome: 'applied' | 'refused' | 'refused_by_network' | 'forgotten';
}

export interface CardStatusActivities {
  /**
   * Begins the change, unless it has begun, asks the network for it, and records the network's answer.
   * @param nextAskMs in how long it is asked again, if it doesn't decide
   * @throws ApplicationFailure `CardBusy` while another change of the card comes first: try again.
   * @throws CardNetworkUnavailable if the network gives no definite answer.
   */
  requestStatusChange(claimId: string, nextAskMs?: number): Promise<StatusChangeEnd>;
}

export interface CardStatusDependencies extends CommandContext {
  /** Live mode's network; null if none is configured. */
  liveNetwork: CardNetwork | null;
  /**
   * Called when a claim has its response, to notify waiting requests. Does not throw.
   * @param response the response, if this process has just stored it
   */
  answered(claimId: string, response: StoredResponse | null): void;
  /** Called after the first step is committed, before the network is asked. Does not throw. */
  opened?(claimId: string): void;
}

/** How long the workflow pauses before its first repetitions. */
const FIRST_PAUSE_MS = 500;

/**
 * The activity of `changeCardStatus`. It can be repeated at any point, and then does only what is left to do.
 */
export function createCardStatusActivities(dependencies: CardStatusDependencies): CardStatusActivities {
  const { orm, liveNetwork, answered, opened } = dependencies;
  return {
    async requestStatusChange(claimId, nextAskMs = FIRST_PAUSE_MS) {
      const begun = await beginStatusChange(dependencies, claimId);
      if (begun.state === 'busy') throw cardBusy();
      if (begun.state === 'answered') {
        answered(claimId, begun.response);
        return readEnd(claimId, begun.response);
      }
      opened?.(claimId);
      const network = configured(liveNetwork);
      const { asked, isFirst } = begun;
      const { status } = await askAndNote(orm, { claimId, isFirst, nextAskMs, deadlineMs: null }, () =>
        network.changeCardStatus(asked),
      );
      const end = status === 'applied' ? completeStatusChange : refuseStatusChange;
      const { response, topUpClaimIds } = await end(dependencies, claimId);
      answered(claimId, response);
      for (const topUpClaimId of topUpClaimIds) answered(topUpClaimId, null);
      if (response === null) return readEnd(claimId, null);
      return { outcome: status === 'applied' ? 'applied' : 'refused_by_network' };
    },
  };

  /** How a change that is over has ended, by its response. @param stored null if another run stored it */
  async function readEnd(claimId: string, stored: StoredResponse | null): Promise<StatusChangeEnd> {
    const response = stored ?? (await readClaimResponse(dependencies, claimId));
    if (response === null) return { outcome: 'forgotten' };
    return { outcome: response.status === 200 ? 'applied' : 'refused' };
  }
}

/** This is expected, so it is neither logged nor counted as a failure. */
function cardBusy(): ApplicationFailure {
  return ApplicationFailure.create({
    type: 'CardBusy',
    message: 'another change of the card comes first',
    category: ApplicationFailureCategory.BENIGN,
  });
}
