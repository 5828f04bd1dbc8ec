import { query } from '../db/sql.ts';
import { siblingId } from '../domain/ids.ts';
import type { CommandContext } from './command-context.ts';

/** Marks an issuance that is past its deadline: `attention list` shows it, and `card resolve` is allowed from here on. */
export async function flagIssuanceOverdue({ orm }: CommandContext, claimId: string): Promise<void> {
  await query(
    orm.em.fork(),
    `UPDATE card SET overdue_since = coalesce(overdue_since, now()) WHERE id = $1 AND status = 'funding_pending'`,
    [siblingId('card', claimId)],
  );
}
