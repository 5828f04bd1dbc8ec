import { type CardNetwork, CardNetworkUnavailable } from '../adapters/card-network/card-network.ts';
import { acceptIssuance } from '../commands/accept-issuance.ts';
import { activateCard } from '../commands/activate-card.ts';
import type { IssuanceContext } from '../commands/command-context.ts';
import { failIssuance } from '../commands/fail-issuance.ts';
import { flagIssuanceOverdue } from '../commands/flag-issuance-overdue.ts';
import { openIssuance } from '../commands/open-issuance.ts';
import { readPendingIssuance } from '../commands/pending-issuance.ts';
import type { Opening } from '../commands/run-opening.ts';
import type { IssuedCard } from '../domain/issued-card.ts';
import { askOrLookUp, configured } from './ask-network.ts';
import type { SettlementState } from './settlement-state.ts';

export interface CardIssuanceActivities {
  openIssuance(claimId: string): Promise<Opening>;
  /** @throws CardNetworkUnavailable where the network gives no definite answer. */
  settleIssuance(claimId: string): Promise<SettlementState>;
  settleIssuanceByHand(claimId: string, outcome: 'issued' | 'failed'): Promise<void>;
  flagIssuanceOverdue(claimId: string): Promise<void>;
}

export interface CardIssuanceDependencies extends IssuanceContext {
  /** Live mode's network; null where none is configured, and then nothing is ever held for it. */
  liveNetwork: CardNetwork | null;
  /** Called when a claim has its answer, for whoever waits for it; does not fail. */
  answered(claimId: string): void;
}

/** The effects that `issueCard` asks for. Each can be run again at any point and then does what was left to do. */
export function createCardIssuanceActivities(dependencies: CardIssuanceDependencies): CardIssuanceActivities {
  return {
    async openIssuance(claimId) {
      const opening = await openIssuance(dependencies, claimId);
      if (opening === 'answered') dependencies.answered(claimId);
      return opening;
    },
    flagIssuanceOverdue: (claimId) => flagIssuanceOverdue(dependencies, claimId),

    async settleIssuance(claimId) {
      const state = await settle(dependencies, claimId);
      dependencies.answered(claimId);
      return state;
    },

    async settleIssuanceByHand(claimId, outcome) {
      const pending = await readPendingIssuance(dependencies, claimId);
      if (pending === null) return;
      if (outcome === 'failed') {
        await failIssuance(dependencies, claimId, 'operator_failed');
      } else {
        await activateCard(dependencies, claimId, await whatTheNetworkKnows(dependencies, pending.token));
      }
      dependencies.answered(claimId);
    },
  };
}

async function settle(dependencies: CardIssuanceDependencies, claimId: string): Promise<SettlementState> {
  const pending = await readPendingIssuance(dependencies, claimId);
  if (pending === null) return 'settled';
  const network = configured(dependencies.liveNetwork);
  const answer = await askOrLookUp(
    () => network.issueCard(pending),
    () => network.lookUpIssuance(pending.token),
  );
  switch (answer.status) {
    case 'issued':
      await activateCard(dependencies, claimId, answer);
      return 'settled';
    case 'declined':
      await failIssuance(dependencies, claimId, 'provider_declined');
      return 'settled';
    case 'failed':
      await failIssuance(dependencies, claimId, 'issuance_failed');
      return 'settled';
    case 'accepted':
      await acceptIssuance(dependencies, claimId);
      return 'accepted';
  }
}

/** An operator's word is enough to activate a card; its digits are only known if the network tells them. */
async function whatTheNetworkKnows(
  dependencies: CardIssuanceDependencies,
  token: string,
): Promise<IssuedCard> {
  const unknown = { networkCardId: null, last4: null, expMonth: null, expYear: null };
  try {
    const answer = await configured(dependencies.liveNetwork).lookUpIssuance(token);
    return answer.status === 'issued' ? answer : unknown;
  } catch (error) {
    if (error instanceof CardNetworkUnavailable) return unknown;
    throw error;
  }
}
