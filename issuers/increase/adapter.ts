import { sql } from 'kysely';
import { readStatement } from '../../platform/db/sql.ts';
import type { AdapterOptions, CardNetworkAdapter } from '../adapter.ts';
import { isStatusChangeUnderWay } from '../status-change-under-way.ts';
import { createIncreaseClient } from './client.ts';
import { increaseIngress } from './ingress.ts';

export const increase: CardNetworkAdapter = {
  start: async ({ config, orm, budget, logger }) => {
    const keyLifetimeMs = config.networkKeyLifetimeMs;
    const client = createIncreaseClient({
      config: required(config),
      keyLifetimeMs,
      isUnderWay: (change) => isStatusChangeUnderWay(orm, change),
      isInUse: async (cardId) => (await cardInUse(orm.em.fork(), { cardId })).length > 0,
      budget,
      logger,
    });
    return { network: client, stop: () => client.close() };
  },
  ingress: ({ config, budget, logger }) => increaseIngress({ config: required(config), budget, logger }),
};

/**
 * A card that partners can use, or could: an operator may have decided so, whatever became of its transfer.
 */
const cardInUse = readStatement(
  (db, { cardId }: { cardId: string }) =>
    db
      .selectFrom('card')
      .select('id')
      .where('id', '=', cardId)
      .where('mode', '=', sql.lit<'live'>('live'))
      .where('status', 'not in', ['funding_pending', 'failed']),
  { acrossTenants: 'network' },
);

function required({ increase: config }: AdapterOptions['config']) {
  if (config === null) throw new Error('CARD_NETWORK is increase, but its variables were not read');
  return config;
}
