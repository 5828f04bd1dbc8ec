import { Refusal } from './refusal.ts';

/** What an operator's decision on an operation takes, whose network stayed silent. */
export interface DecisionByHand {
  reason: string;
  /** How long the network may take. */
  deadlineMs: number;
  /** Whether nothing drives the operation any more, so that nothing can mark it as past its deadline. */
  workflowEnded: boolean;
}

/**
 * Past the deadline is what the workflow has marked so, or what has lost its workflow and is old enough.
 * @param pending the row of a card or top-up that is pending
 * @throws Refusal where it is not past its deadline.
 */
export function requireOverdue(
  pending: { id: string; overdue_since: string | null; created_at: string },
  { deadlineMs, workflowEnded }: DecisionByHand,
): void {
  if (pending.overdue_since !== null) return;
  const dueAt = new Date(new Date(pending.created_at).getTime() + deadlineMs);
  if (dueAt > new Date()) {
    throw new Refusal(
      `${pending.id} is not past its deadline, ${dueAt.toISOString()}: until then the network may still answer.`,
    );
  }
  if (!workflowEnded) {
    throw new Refusal(
      `The workflow of ${pending.id} has not noticed yet that it is past its deadline: see that a worker runs, ` +
        'then try again.',
    );
  }
}
