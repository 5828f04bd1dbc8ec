import { Refusal } from '../idempotency/refusal.ts';

/**
 * Past the deadline is what a worker has marked so, or what is old enough.
 * @param pending the row of a card or top-up that is pending
 * @throws Refusal where it is not past its deadline.
 */
export function requireOverdue(
  pending: { id: string; overdue_since: string | null; created_at: string },
  deadlineMs: number,
): void {
  if (pending.overdue_since !== null) return;
  const dueAt = new Date(new Date(pending.created_at).getTime() + deadlineMs);
  if (dueAt > new Date()) {
    throw new Refusal(
      `${pending.id} is not past its deadline, ${dueAt.toISOString()}: the network may still respond until then.`,
    );
  }
}
