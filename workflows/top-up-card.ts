import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { FundingActivities } from '../activities/fundings.ts';
import { LOCAL_NETWORK_CALL, NETWORK_REQUEST, RETRIED_FOR_EVER } from './activity-options.ts';
import { type NetworkOperationInput, resolveTopUp } from './messages.ts';
import { runNetworkOperation } from './network-operation.ts';

const firstRequest = proxyLocalActivities<FundingActivities>(LOCAL_NETWORK_CALL).requestTopUp;
const { requestTopUp } = proxyActivities<FundingActivities>(NETWORK_REQUEST);
const step = proxyActivities<FundingActivities>(RETRIED_FOR_EVER);

/** Tops one card up, once. */
export function topUpCard(input: NetworkOperationInput): Promise<void> {
  return runNetworkOperation(
    {
      firstRequest,
      request: requestTopUp,
      flagOverdue: step.flagTopUpOverdue,
      applyResolution: step.applyTopUpResolution,
      resolve: resolveTopUp,
      outcomes: ['succeeded', 'failed'],
      overdueDetails: OVERDUE,
    },
    input,
  );
}

const OVERDUE =
  'Past its deadline: the network has not said whether it loaded the card. Find out there, then send the signal ' +
  '`resolve` with {"outcome": "succeeded"} or {"outcome": "failed"}, or run `operator topup resolve`.';
