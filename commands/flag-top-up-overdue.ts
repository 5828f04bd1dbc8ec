import { query } from '../db/sql.ts';
import { siblingId } from '../domain/ids.ts';
import type { CommandContext } from './command-context.ts';

/** Marks a top-up that is past its deadline: `attention list` shows it, and `topup resolve` is allowed from here on. */
export async function flagTopUpOverdue({ orm }: CommandContext, claimId: string): Promise<void> {
  await query(
    orm.em.fork(),
    `UPDATE topup SET overdue_since = coalesce(overdue_since, now()) WHERE id = $1 AND status = 'pending'`,
    [siblingId('topup', claimId)],
  );
}
