import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import type { Tenant } from '../db/tenant.ts';
import { ApiError } from '../domain/api-error.ts';
import type { Mode } from '../domain/mode.ts';

/** Our card behind the live network's id of it, and whose it is. Neither ever changes. @throws ApiError `card_not_found` */
export async function findNetworkCard(orm: Orm, networkCardId: string): Promise<Tenant & { cardId: string }> {
  const [row] = await query<{ id: string; partner_id: string; mode: Mode }>(
    orm.em.fork(),
    `SELECT id, partner_id, mode FROM card WHERE network_card_id = $1 AND mode = 'live'`,
    [networkCardId],
  );
  if (row === undefined) throw new ApiError('card_not_found', { message: 'No card has this networkCardId.' });
  return { cardId: row.id, partnerId: row.partner_id, mode: row.mode };
}
