import { sql } from 'kysely';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import type { StatusChangeRequest } from './card-network.ts';

/**
 * Whether a change of a card's status is still the one under way. For networks that know no tokens of
 * changes: ask right before the change is sent, because a process that was frozen must not send it after a
 * newer one (docs/decisions/status-changes-one-at-a-time.md).
 */
export async function isStatusChangeUnderWay(orm: Orm, change: StatusChangeRequest): Promise<boolean> {
  const marked = await markedWith(orm.em.fork(), change);
  return marked.length > 0;
}

const markedWith = readStatement(
  (db, { token, networkCardId }: StatusChangeRequest) =>
    db
      .selectFrom('card')
      .select('id')
      .where('network_card_id', '=', networkCardId)
      // A literal, so that the planner can use the partial index.
      .where('mode', '=', sql.lit<'live'>('live'))
      .where('status_change_claim_id', '=', token),
  { acrossTenants: 'network' },
);
