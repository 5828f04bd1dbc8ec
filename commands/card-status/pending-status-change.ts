import { readStatement } from '../../db/sql.ts';
import {
  STATUS_CHANGES,
  type StatusChangeOperation,
  type StatusChangeRequest,
} from '../../domain/card-status.ts';
import type { CommandContext } from '../command-context.ts';

/** What the network is asked for; null where the change is over. The token is the claim's id. */
export async function readPendingStatusChange(
  { orm }: Pick<CommandContext, 'orm'>,
  claimId: string,
): Promise<StatusChangeRequest | null> {
  const [row] = await changeOf(orm.em.fork(), { claimId });
  if (row === undefined) return null;
  return {
    token: claimId,
    networkCardId: row.network_card_id,
    cardStatus: STATUS_CHANGES[row.operation].to,
  };
}

const changeOf = readStatement((db, { claimId }: { claimId: string }) =>
  db
    .selectFrom('idempotency_claim as c')
    .innerJoin('card as k', 'k.id', 'c.card_id')
    .select(['c.operation', 'k.network_card_id'])
    .where('c.id', '=', claimId)
    .whereRef('k.status_change_claim_id', '=', 'c.id')
    .$narrowType<{ operation: StatusChangeOperation; network_card_id: string }>(),
);
