import { sleep } from '@temporalio/workflow';
import type { FundingEnd } from '../../cards/network-activities.ts';
import type { NetworkOperationInput } from '../../workflows/messages.ts';
import { issueCard as unchanged } from '../../workflows/network-operation.ts';

/** issueCard with an additional timer at its beginning: a change that breaks the replay of running workflows. */
export async function issueCard(input: NetworkOperationInput): Promise<FundingEnd> {
  await sleep('1s');
  return unchanged(input);
}
