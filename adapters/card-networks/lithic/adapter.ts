import { sql } from 'kysely';
import { readStatement } from '../../../db/sql.ts';
import type { StatusChangeRequest } from '../../../domain/card-network.ts';
import type { AdapterOptions, CardNetworkAdapter } from '../adapter.ts';
import { createLithicClient } from './client.ts';
import { lithicIngress } from './ingress.ts';

export const lithicNetwork: CardNetworkAdapter = {
  start: async ({ config, orm, budget, logger }) => {
    const client = createLithicClient({
      config: required(config),
      keyLifetimeMs: config.networkKeyLifetimeMs,
      budget,
      logger,
      isUnderWay: async (change) => (await changeUnderWay(orm.em.fork(), change)).length > 0,
    });
    return { network: client, stop: () => client.close() };
  },
  ingress: ({ config, logger }) => lithicIngress(required(config), logger),
};

const changeUnderWay = readStatement(
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

function required({ lithic: config }: AdapterOptions['config']) {
  if (config === null) throw new Error('CARD_NETWORK is lithic, but its variables were not read');
  return config;
}
