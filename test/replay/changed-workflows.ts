import { sleep } from '@temporalio/workflow';
import type { FundingEnd } from '../../cards/network-activities.ts';
import { issueCard as unchanged } from '../../workflows/issue-card.ts';
import type { NetworkOperationInput } from '../../workflows/messages.ts';

/** issueCard with an additional timer at its beginning: a change that breaks the replay of running workflows. */
export async function issueCard(input: NetworkOperationInput): Promise<FundingEnd> {
  await sleep('1s');
  return unchanged(input);
}
