import {
  type CardNetwork,
  CardNetworkUnavailable,
  type IssuanceFailed,
  type IssueAnswer,
} from '../adapters/card-network/card-network.ts';
import { acceptIssuance } from '../commands/accept-issuance.ts';
import { activateCard } from '../commands/activate-card.ts';
import type { IssuanceContext } from '../commands/command-context.ts';
import { failIssuance } from '../commands/fail-issuance.ts';
import { flagIssuanceOverdue } from '../commands/flag-issuance-overdue.ts';
import { type Opening, openIssuance } from '../commands/open-issuance.ts';
import { type PendingIssuance, readPendingIssuance } from '../commands/pending-issuance.ts';
import type { IssuedCard } from '../domain/issued-card.ts';

/** `settled`: over and, where nobody had answered yet, answered. `accepted`: the network works on it, answered 202. */
export type SettlementState = 'settled' | 'accepted';

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
}

/** The effects that `issueCard` asks for. Each can be run again at any point and then does what was left to do. */
export function createCardIssuanceActivities(dependencies: CardIssuanceDependencies): CardIssuanceActivities {
  return {
    openIssuance: (claimId) => openIssuance(dependencies, claimId),
    flagIssuanceOverdue: (claimId) => flagIssuanceOverdue(dependencies, claimId),

    async settleIssuance(claimId) {
      const pending = await readPendingIssuance(dependencies, claimId);
      if (pending === null) return 'settled';
      const answer = await askNetwork(liveNetwork(dependencies), pending);
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
    },

    async settleIssuanceByHand(claimId, outcome) {
      const pending = await readPendingIssuance(dependencies, claimId);
      if (pending === null) return;
      if (outcome === 'failed') return failIssuance(dependencies, claimId, 'operator_failed');
      await activateCard(dependencies, claimId, await whatTheNetworkKnows(dependencies, pending.token));
    },
  };
}

function liveNetwork({ liveNetwork: network }: CardIssuanceDependencies): CardNetwork {
  if (network === null)
    throw new Error('a live card is pending, but CARD_NETWORK is none: configure its network again');
  return network;
}

/**
 * Asks for the card, again under the same token. A network that gives no answer to that may still know the token: it can
 * have acted before its answer got lost, or find that the request is not word for word the first one, as it is once the
 * product's BIN has changed.
 */
async function askNetwork(
  network: CardNetwork,
  pending: PendingIssuance,
): Promise<IssueAnswer | IssuanceFailed> {
  try {
    return await network.issueCard(pending);
  } catch (error) {
    if (!(error instanceof CardNetworkUnavailable)) throw error;
    const known = await network.lookUpIssuance(pending.token);
    if (known.status === 'unknown') throw error;
    return known;
  }
}

/** An operator's word is enough to activate a card; its digits are only known if the network tells them. */
async function whatTheNetworkKnows(
  dependencies: CardIssuanceDependencies,
  token: string,
): Promise<IssuedCard> {
  const unknown = { networkCardId: null, last4: null, expMonth: null, expYear: null };
  try {
    const answer = await liveNetwork(dependencies).lookUpIssuance(token);
    return answer.status === 'issued' ? answer : unknown;
  } catch (error) {
    if (error instanceof CardNetworkUnavailable) return unknown;
    throw error;
  }
}
