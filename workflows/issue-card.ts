import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { CardIssuanceActivities } from '../activities/card-issuance.ts';
import { AT_ONCE, AT_ONCE_WITH_NETWORK, LATER, LATER_WITH_NETWORK } from './activity-options.ts';
import { type NetworkOperationInput, resolveIssuance } from './messages.ts';
import { runNetworkOperation } from './network-operation.ts';

const later = proxyActivities<CardIssuanceActivities>(LATER);

/** Issues one card. */
export function issueCard(input: NetworkOperationInput): Promise<void> {
  return runNetworkOperation(STEPS, input);
}

const STEPS = {
  open: proxyLocalActivities<CardIssuanceActivities>(AT_ONCE).openIssuance,
  settleAtOnce: proxyLocalActivities<CardIssuanceActivities>(AT_ONCE_WITH_NETWORK).settleIssuance,
  settleLater: proxyActivities<CardIssuanceActivities>(LATER_WITH_NETWORK).settleIssuance,
  flagOverdue: later.flagIssuanceOverdue,
  settleByHand: later.settleIssuanceByHand,
  resolve: resolveIssuance,
  outcomes: ['issued', 'failed'] as const,
  overdueDetails:
    'Past its deadline: the network has not said whether it issued the card. Find out there, then send the signal ' +
    '`resolve` with {"outcome": "issued"} or {"outcome": "failed"}, or run `operator card resolve`. If the network ' +
    'cannot be reached, add "networkCardId" to "issued".',
};
