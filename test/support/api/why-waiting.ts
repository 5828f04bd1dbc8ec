import { asOwner } from '../postgres.ts';
import type { TestStack } from '../stack.ts';

/** Why a message of the simulated network is not booked; null if it is, or was never sent. */
export async function whyWaiting(stack: TestStack, id: unknown): Promise<string | null> {
  const [row] = await asOwner<{ why: string | null }>(
    stack,
    `SELECT CASE WHEN m.answer IS NULL THEN i.reason WHEN u.id IS NOT NULL THEN 'unreadable' END AS why
     FROM simulated_message m LEFT JOIN network_inbox i ON i.id = m.payment_id
     LEFT JOIN payment y ON y.mode = 'live' AND y.payment_id = m.payment_id
     LEFT JOIN LATERAL jsonb_to_recordset(y.said -> 'unreadable') u (id text) ON u.id = m.id
     WHERE m.id = $1`,
    [id],
  );
  return row?.why ?? null;
}
