import type { WorkflowHandle } from '@temporalio/client';
import { query } from '../../../db/sql.ts';
import { siblingId } from '../../../domain/ids.ts';
import { issueCardWorkflowId } from '../../../workflows/messages.ts';
import type { TestStack } from '../stack.ts';
import { until } from './until.ts';

/** The workflow of the only claim there is, once the server has it. */
export async function startedWorkflow({ orm, client }: TestStack): Promise<WorkflowHandle> {
  const claim = await until('a claim is made', async () => {
    const [row] = await query<{ id: string }>(orm.em.fork(), 'SELECT id FROM idempotency_claim');
    return row;
  });
  const workflow = client.workflow.getHandle(issueCardWorkflowId(siblingId('card', claim.id)));
  await untilStarted(workflow);
  return workflow;
}

/** Waits until the server has a workflow that somebody else starts. */
export async function untilStarted(workflow: WorkflowHandle): Promise<void> {
  await until('its workflow is started', async () => {
    const description = await workflow.describe().catch((error: Error) => error);
    if (!(description instanceof Error)) return true;
    if (description.name !== 'WorkflowNotFoundError') throw description;
    return false;
  });
}
