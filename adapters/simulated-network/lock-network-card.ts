import { query, type Sql } from '../../db/sql.ts';

/**
 * Locks a card until the transaction ends: what is asked of one card happens one after the other. Taken before any
 * operation's row, everywhere.
 * @returns its status; undefined where the network has no such card.
 */
export async function lockNetworkCard(
  tx: Sql,
  networkCardId: string,
): Promise<'active' | 'frozen' | 'blocked' | undefined> {
  const [card] = await query<{ status: 'active' | 'frozen' | 'blocked' }>(
    tx,
    'SELECT status FROM simulated_network.card WHERE network_card_id = $1 FOR NO KEY UPDATE',
    [networkCardId],
  );
  return card?.status;
}
