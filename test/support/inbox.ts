import { asOwner } from './postgres.ts';
import type { TestStack } from './stack.ts';
import { until } from './until.ts';

/** Waits until a worker has looked at every payment that has changed at the card network. */
export async function inboxRead(stack: TestStack): Promise<void> {
  await until('everything is read', async () => {
    const unread = await asOwner(
      stack,
      `SELECT FROM network_inbox
       WHERE kind = 'payment'
         AND (reason IS NULL OR reason IN ('network_unavailable', 'not_readable', 'not_taken'))`,
      [],
    );
    return unread.length === 0;
  });
}

/** Why each of these payments waits; nothing of one that does not. */
export async function whyWaiting(stack: TestStack, ids: readonly string[]): Promise<(string | null)[]> {
  const rows = await asOwner<{ reason: string | null }>(
    stack,
    'SELECT reason FROM network_inbox WHERE id = any($1) ORDER BY id',
    [ids],
  );
  return rows.map(({ reason }) => reason);
}
