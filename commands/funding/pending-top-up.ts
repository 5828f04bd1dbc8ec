import { query } from '../../db/sql.ts';
import type { TopUpDecision } from '../../domain/decision.ts';
import { siblingId } from '../../domain/ids.ts';
import type { CommandContext } from '../command-context.ts';

export interface PendingTopUp {
  token: string;
  networkCardId: string;
  amountCents: number;
}

/** What the network is asked for, and what an operator has decided meanwhile. */
export interface OpenTopUp {
  asked: PendingTopUp;
  decision: TopUpDecision | null;
}

/** Null where the top-up is over. The token is the top-up's id. */
export async function readPendingTopUp({ orm }: CommandContext, claimId: string): Promise<OpenTopUp | null> {
  const [row] = await query<{
    id: string;
    network_card_id: string;
    amount_cents: string;
    decision: OpenTopUp['decision'];
  }>(
    orm.em.fork(),
    `SELECT t.id, c.network_card_id, t.amount_cents, CASE WHEN NOT t.decision ? 'refused' THEN t.decision END AS decision
     FROM topup t JOIN card c ON c.id = t.card_id
     WHERE t.id = $1 AND t.status = 'pending'`,
    [siblingId('topup', claimId)],
  );
  if (row === undefined) return null;
  const asked = {
    token: row.id,
    networkCardId: row.network_card_id,
    amountCents: Number(row.amount_cents),
  };
  return { asked, decision: row.decision };
}
