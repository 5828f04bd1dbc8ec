import type { EntityManager } from '@mikro-orm/postgresql';
import { cardColumns } from '../../db/columns.ts';
import { query } from '../../db/sql.ts';
import type { StatusChangeOperation } from '../../domain/card-status.ts';
import type { Mode } from '../../domain/mode.ts';
import type { CardRow } from '../../resources/card.ts';
import { lockPendingTopUps } from './fail-pending-top-ups.ts';

export interface LockedStatusChange {
  operation: StatusChangeOperation;
  card: CardRow & {
    /** The claim of the change that is under way at the network, this one or another. */
    status_change_claim_id: string | null;
  };
}

/**
 * Locks the claim of a status change and its card, and between them what else a block changes. Null where the claim is
 * answered, or forgotten, or of test mode, whose changes no workflow makes: a process of an earlier release left it.
 */
export async function lockStatusChange(
  tx: EntityManager,
  claimId: string,
): Promise<LockedStatusChange | null> {
  const [claim] = await query<ClaimRow>(
    tx,
    `SELECT operation, mode, card_id, response_status IS NOT NULL AS answered FROM idempotency_claim WHERE id = $1
     FOR NO KEY UPDATE`,
    [claimId],
  );
  if (claim === undefined || claim.answered || claim.mode === 'test') return null;
  if (claim.operation === 'block_card') await lockPendingTopUps(tx, claim.card_id);
  const [card] = await query<LockedStatusChange['card']>(
    tx,
    `SELECT ${cardColumns('c')}, c.status_change_claim_id FROM card c WHERE c.id = $1 FOR NO KEY UPDATE`,
    [claim.card_id],
  );
  if (card === undefined) throw new Error(`claim ${claimId} is about a card that is not there`);
  return { operation: claim.operation, card };
}

interface ClaimRow {
  mode: Mode;
  operation: StatusChangeOperation;
  card_id: string;
  answered: boolean;
}
