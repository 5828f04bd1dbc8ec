import type { Logger } from 'pino';
import type { Config } from '../platform/config/service.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { CardNetwork, IngressRoute } from './card-network.ts';
import type { RequestBudget } from './request-budget.ts';

export interface AdapterOptions {
  config: Pick<Config, 'increase' | 'lithic' | 'networkKeyLifetimeMs'>;
  orm: Orm;
  ring: KeyRing;
  /** Each request to the network takes a turn first. */
  budget: RequestBudget;
  logger: Logger;
}

/** What the folder of a card network has to export (docs/decisions/card-networks.md). */
export interface CardNetworkAdapter {
  /**
   * Opens the network's client.
   * @param apiUrl where a network that runs in this process posts its messages; null if another process posts
   * them
   */
  start(
    options: AdapterOptions & { apiUrl: string | null },
  ): Promise<{ network: CardNetwork; stop(): Promise<void> }>;
  /** The paths on which the network posts to us. */
  ingress(options: AdapterOptions): IngressRoute[];
}
