/** Which rooms a room may import from. `types` may only be imported with `import type`. */
export interface Direction {
  rooms: readonly string[];
  types?: readonly string[];
  /** npm packages and node:* modules. If left out, any. */
  packages?: readonly string[];
}

const TEMPORAL_WORKFLOW = ['@temporalio/workflow', '@temporalio/common'];

const API = [
  'domain',
  'resources',
  'crypto',
  'config',
  'process',
  'db',
  'ledger',
  'commands',
  'temporal',
  'monitoring',
  'workflows/messages.ts',
];

/** docs/ARCHITECTURE.md, "Import directions". The longest entry that a file's path begins with applies. */
export const DIRECTIONS: Record<string, Direction> = {
  domain: { rooms: [], packages: ['zod', 'ipaddr.js'] },
  resources: { rooms: ['domain'], types: ['db'], packages: ['zod'] },
  crypto: { rooms: ['domain'] },
  process: { rooms: ['domain'] },
  config: { rooms: ['domain', 'crypto', 'process'] },
  db: { rooms: ['domain', 'crypto', 'config', 'process'] },
  ledger: { rooms: ['domain', 'db'] },
  commands: { rooms: ['domain', 'resources', 'crypto', 'process', 'db', 'ledger'] },
  adapters: { rooms: ['domain', 'crypto', 'process', 'db'], types: ['config'] },
  activities: { rooms: ['domain', 'crypto', 'process', 'db', 'commands', 'adapters'] },
  // A workflow's imports are evaluated for each execution. zod alone, which most of the domain imports, takes 2 ms.
  workflows: { rooms: ['domain/scan-lag.ts'], types: ['domain', 'activities'], packages: TEMPORAL_WORKFLOW },
  temporal: {
    rooms: [
      'domain',
      'config',
      'process',
      'workflows/messages.ts',
      'platform/temporal/search-attributes.ts',
      'crypto',
      'platform/temporal/carried-headers.ts',
    ],
    types: ['workflows'],
  },
  attention: { rooms: ['domain', 'crypto', 'db', 'commands', 'workflows/messages.ts'], types: ['config'] },
  monitoring: { rooms: ['domain', 'crypto', 'process', 'db', 'commands', 'attention'] },
  api: { rooms: API },
  // The root of the process: it puts the parts together, and passes in what the others may not import.
  'api/server.ts': { rooms: [...API, 'adapters', 'activities'] },
  codec: { rooms: ['crypto', 'config', 'process', 'platform/temporal/encryption-codec.ts'] },
  worker: {
    rooms: [
      'domain',
      'crypto',
      'config',
      'process',
      'db',
      'commands',
      'adapters',
      'activities',
      'temporal',
      'monitoring',
    ],
  },
  operator: {
    rooms: [
      'domain',
      'resources',
      'crypto',
      'db',
      'ledger',
      'commands',
      'attention',
      'temporal',
      'workflows/messages.ts',
      'config',
      'process',
    ],
  },
  // It asks the card network, as the worker does.
  'issuers/reconciliation/operator.ts': {
    rooms: ['operator', 'domain', 'config', 'process', 'db', 'commands', 'adapters'],
  },
  // Published by itself, so it imports nothing of the service and needs no package.
  client: { rooms: [], packages: ['node:crypto', 'node:timers/promises', 'node:util'] },
  dev: {
    rooms: ['domain', 'crypto', 'db', 'commands', 'config', 'process', 'adapters', 'temporal', 'client'],
  },
};
