import { query } from '../db/sql.ts';
import { siblingId } from '../domain/ids.ts';
import type { CommandContext } from './command-context.ts';

export interface PendingTopUp {
  token: string;
  networkCardId: string;
  amountCents: number;
}

/** What the network is asked for; null where the top-up is over. The token is the top-up's id. */
export async function readPendingTopUp(
  { orm }: CommandContext,
  claimId: string,
): Promise<PendingTopUp | null> {
  const [row] = await query<{
    id: string;
    network_card_id: string;
    amount_cents: string;
  }>(
    orm.em.fork(),
    `SELECT t.id, c.network_card_id, t.amount_cents FROM topup t JOIN card c ON c.id = t.card_id
     WHERE t.id = $1 AND t.status = 'pending'`,
    [siblingId('topup', claimId)],
  );
  if (row === undefined) return null;
  return {
    token: row.id,
    networkCardId: row.network_card_id,
    amountCents: Number(row.amount_cents),
  };
}
