import { sleep } from '@temporalio/workflow';
import type { FundingEnd } from '../../activities/fundings.ts';
import { issueCard as unchanged } from '../../workflows/issue-card.ts';
import type { NetworkOperationInput } from '../../workflows/messages.ts';

/** issueCard with one timer more at its beginning: a change that no running workflow survives. */
export async function issueCard(input: NetworkOperationInput): Promise<FundingEnd> {
  await sleep('1s');
  return unchanged(input);
}
