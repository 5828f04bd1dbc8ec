import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { FundingActivities } from '../activities/fundings.ts';
import { LOCAL_NETWORK_CALL, NETWORK_REQUEST, RETRIED_FOR_EVER } from './activity-options.ts';
import { type NetworkOperationInput, resolveIssuance } from './messages.ts';
import { runNetworkOperation } from './network-operation.ts';

const firstRequest = proxyLocalActivities<FundingActivities>(LOCAL_NETWORK_CALL).requestIssuance;
const { requestIssuance } = proxyActivities<FundingActivities>(NETWORK_REQUEST);
const step = proxyActivities<FundingActivities>(RETRIED_FOR_EVER);

/** Issues one card. */
export function issueCard(input: NetworkOperationInput): Promise<void> {
  return runNetworkOperation(
    {
      firstRequest,
      request: requestIssuance,
      flagOverdue: step.flagIssuanceOverdue,
      applyResolution: step.applyIssuanceResolution,
      resolve: resolveIssuance,
      outcomes: ['issued', 'failed'],
      overdueDetails: OVERDUE,
    },
    input,
  );
}

const OVERDUE =
  'Past its deadline: the network has not said whether it issued the card. Find out there, then send the signal ' +
  '`resolve` with {"outcome": "issued"} or {"outcome": "failed"}, or run `operator card resolve`. If the network ' +
  'cannot be reached, add "networkCardId" to "issued".';
