import { defineEntity, p } from '@mikro-orm/core';

/** The card network that has this database's live data; no row if nothing live has been made. */
export const LiveNetworkEntity = defineEntity({
  name: 'LiveNetwork',
  tableName: 'live_network',
  properties: {
    isOnly: p.boolean().default(true).primary(),
    network: p.text().collation('C'),
  },
});
