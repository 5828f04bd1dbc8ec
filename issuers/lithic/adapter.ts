import type { AdapterOptions, CardNetworkAdapter } from '../adapter.ts';
import { isStatusChangeUnderWay } from '../status-change-under-way.ts';
import { createLithicClient } from './client.ts';
import { lithicIngress } from './ingress.ts';

export const lithicNetwork: CardNetworkAdapter = {
  start: async ({ config, orm, budget, logger }) => {
    const client = createLithicClient({
      config: required(config),
      keyLifetimeMs: config.networkKeyLifetimeMs,
      budget,
      logger,
      isUnderWay: (change) => isStatusChangeUnderWay(orm, change),
    });
    return { network: client, stop: () => client.close() };
  },
  ingress: ({ config, logger }) => lithicIngress(required(config), logger),
};

function required({ lithic: config }: AdapterOptions['config']) {
  if (config === null) throw new Error('CARD_NETWORK is lithic, but its variables were not read');
  return config;
}
