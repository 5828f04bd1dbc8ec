import { sql } from 'kysely';
import type { Orm } from '../db/orm.ts';
import { readStatement } from '../db/sql.ts';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/tenant.ts';

/** Our card behind the live network's id of it, and whose it is. Neither ever changes. @throws ApiError `card_not_found` */
export async function findNetworkCard(orm: Orm, networkCardId: string): Promise<Tenant & { cardId: string }> {
  const [row] = await liveCardWith(orm.em.fork(), { networkCardId });
  if (row === undefined) throw new ApiError('card_not_found', { message: 'No card has this networkCardId.' });
  return { cardId: row.id, partnerId: row.partner_id, mode: row.mode };
}

const liveCardWith = readStatement((db, { networkCardId }: { networkCardId: string }) =>
  db
    .selectFrom('card')
    .select(['id', 'partner_id', 'mode'])
    .where('network_card_id', '=', networkCardId)
    // In the text, as the partial index has it.
    .where('mode', '=', sql.lit<'live'>('live')),
);
