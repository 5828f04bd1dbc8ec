import { readWorkflowStatus as read } from '../../temporal/workflow-status.ts';
import { isTemporalError } from '../explain-error.ts';
import type { Session } from '../session.ts';

const TIMEOUT_MS = 3_000;

/** The status of a workflow; null, and a word to `err`, where Temporal does not answer or is not known. */
export async function readWorkflowStatus(
  session: Session,
  workflowId: string,
  err: (text: string) => void,
): Promise<string | null> {
  const address = session.config.temporal?.connectionOptions.address;
  if (address === undefined) {
    err("TEMPORAL_ADDRESS is not set, so the workflow's status is unknown.\n");
    return null;
  }
  const client = await session.temporal();
  try {
    return await client.withDeadline(Date.now() + TIMEOUT_MS, () => read(client, workflowId));
  } catch (error) {
    if (!(await isTemporalError(error))) throw error;
    err(`Temporal does not respond at ${address}, so the workflow's status is unknown.\n`);
    return null;
  }
}
