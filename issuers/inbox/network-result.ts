import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { expectLateAnswer } from '../../cards/late-answers.ts';
import type { TransferDirection } from '../../domain/transfer.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { issueCardWorkflowId, networkResult, transferWorkflowId } from '../../workflows/messages.ts';

/**
 * Whoever told us repeats it if this takes longer, and Temporal's own patience would keep it waiting for half
 * a minute.
 */
const SIGNAL_TIMEOUT_MS = 3_000;

/** The workflow of a card's issuance or of a transfer, by its id. */
export const operationWorkflowId = (subject: 'card' | TransferDirection, id: string): string =>
  subject === 'card' ? issueCardWorkflowId(id) : transferWorkflowId(subject, id);

/**
 * The network has an outcome for an issuance or a transfer. This is only a hint: its workflow asks the network
 * itself, so one that is lost, repeated, late or forged changes no outcome. An operation that has ended is
 * looked up, since the network may contradict its end (docs/decisions/decisions-by-hand.md).
 * @param token the id of the card or the transfer
 */
export async function noteOutcome(
  { orm, client }: { orm: Orm; client: Client },
  { subject, token }: { subject: 'card' | TransferDirection; token: string },
): Promise<void> {
  try {
    await client.withDeadline(Date.now() + SIGNAL_TIMEOUT_MS, () =>
      client.workflow.getHandle(operationWorkflowId(subject, token)).signal(networkResult),
    );
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  await expectLateAnswer(orm, { kind: subject, id: token });
}
