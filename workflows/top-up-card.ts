import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { CardTopUpActivities } from '../activities/card-top-up.ts';
import { AT_ONCE, AT_ONCE_WITH_NETWORK, LATER, LATER_WITH_NETWORK } from './activity-options.ts';
import { type NetworkOperationInput, resolveTopUp } from './messages.ts';
import { runNetworkOperation } from './network-operation.ts';

const later = proxyActivities<CardTopUpActivities>(LATER);

/** Tops one card up, once. */
export function topUpCard(input: NetworkOperationInput): Promise<void> {
  return runNetworkOperation(STEPS, input);
}

const STEPS = {
  open: proxyLocalActivities<CardTopUpActivities>(AT_ONCE).openTopUp,
  settleAtOnce: proxyLocalActivities<CardTopUpActivities>(AT_ONCE_WITH_NETWORK).settleTopUp,
  settleLater: proxyActivities<CardTopUpActivities>(LATER_WITH_NETWORK).settleTopUp,
  flagOverdue: later.flagTopUpOverdue,
  settleByHand: later.settleTopUpByHand,
  resolve: resolveTopUp,
  outcomes: ['succeeded', 'failed'] as const,
  overdueDetails:
    'Past its deadline: the network has not said whether it loaded the card. Find out there, then send the signal ' +
    '`resolve` with {"outcome": "succeeded"} or {"outcome": "failed"}, or run `operator topup resolve`.',
};
