import { transaction } from '../db/transaction.ts';
import { type Operator, recordAudit } from './operator-context.ts';

/**
 * Records that an operator has events sent again. Before it begins: what follows takes Temporal, and so many transactions
 * of its own.
 * @param subject the event, or the account whose events they are
 */
export function recordRequeue(
  { orm, actor }: Operator,
  subject: string,
  detail: Record<string, unknown>,
): Promise<void> {
  return transaction(orm, async (tx) => recordAudit(tx, actor, 'webhook.requeue', subject, detail));
}
