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
      budget,
      logger,
    });
    return { network: client, stop: () => client.close() };
  },
  ingress: ({ config, budget, logger }) => increaseIngress({ config: required(config), budget, logger }),
};

function required({ increase: config }: AdapterOptions['config']) {
  if (config === null) throw new Error('CARD_NETWORK is increase, but its variables were not read');
  return config;
}
