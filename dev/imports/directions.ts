/** Which rooms a room may import from. `types` may only be imported with `import type`. */
export interface Direction {
  rooms: readonly string[];
  types?: readonly string[];
  /** npm packages and node:* modules; left out: any. */
  packages?: readonly string[];
}

const TEMPORAL_WORKFLOW = ['@temporalio/workflow', '@temporalio/common'];

/** docs/ARCHITECTURE.md, "Import directions". The longest path that a file's own begins with decides. */
export const DIRECTIONS: Record<string, Direction> = {
  domain: { rooms: [], packages: ['zod', 'ipaddr.js'] },
  crypto: {
    rooms: ['domain'],
    packages: [
      '@noble/curves/secp256k1.js',
      '@noble/hashes/sha2.js',
      '@noble/hashes/sha3.js',
      '@scure/base',
      '@scure/bip32',
    ],
  },
  db: { rooms: ['domain'] },
  'db/migrate-main.ts': { rooms: ['domain', 'db', 'commands', 'config.ts', 'run-process.ts'] },
  ledger: { rooms: ['domain', 'db'] },
  commands: { rooms: ['domain', 'crypto', 'db', 'ledger'] },
  adapters: { rooms: ['domain', 'crypto', 'db'], types: ['tron-environment.ts'] },
  activities: { rooms: ['domain', 'db', 'commands', 'adapters'] },
  workflows: { rooms: ['domain'], types: ['activities'], packages: TEMPORAL_WORKFLOW },
  'workflows/client': { rooms: ['domain', 'workflows/messages.ts', 'workflows/search-attributes.ts'] },
  api: {
    rooms: ['domain', 'db', 'commands', 'ledger', 'workflows/messages.ts', 'workflows/client'],
    types: ['config.ts'],
  },
  // The one question a request asks of the outside world without a workflow: its answer must not lie in a history.
  'api/reveal-card.ts': { rooms: ['domain', 'db', 'commands', 'adapters/card-network/card-network.ts'] },
  // It gives the activities to the worker that the process hosts.
  'api/live-work.ts': {
    rooms: [
      'domain',
      'commands/announce-answer.ts',
      'activities/card-activities.ts',
      'workflows/client',
      'worker/repeat.ts',
    ],
    types: ['worker/eager-worker.ts'],
  },
  'api/start-api.ts': {
    rooms: [
      'domain',
      'crypto',
      'db',
      'commands/announce-events.ts',
      'commands/deposits/open-deposit.ts',
      'commands/settlement-queue.ts',
      'adapters/card-network',
      'adapters/live-network.ts',
      'adapters/simulated-network/credentials.ts',
    ],
    types: ['config.ts'],
  },
  'api/main.ts': {
    rooms: ['domain', 'config.ts', 'logger.ts', 'run-process.ts', 'worker/eager-worker.ts'],
  },
  worker: {
    rooms: [
      'domain',
      'db',
      'commands',
      'adapters',
      'activities',
      'workflows/client',
      'workflows/account-header.ts',
    ],
    types: ['config.ts'],
  },
  'worker/main.ts': { rooms: ['config.ts', 'logger.ts', 'run-process.ts'] },
  operator: {
    rooms: [
      'domain',
      'db',
      'ledger',
      'commands',
      'workflows/messages.ts',
      'workflows/client',
      'operator-config.ts',
      'config.ts',
    ],
  },
  'tron-environment.ts': { rooms: ['crypto'] },
  'environment.ts': { rooms: ['domain', 'tron-environment.ts'], types: ['db'] },
  'config.ts': { rooms: ['environment.ts', 'tron-environment.ts'], types: ['db'] },
  'operator-config.ts': { rooms: ['config.ts', 'environment.ts'], types: ['db', 'tron-environment.ts'] },
  'logger.ts': { rooms: [] },
  'run-process.ts': { rooms: ['domain', 'config.ts', 'db/session.ts'] },
  // Reads a real network with the adapter of the product.
  'dev/smoke-nile.ts': { rooms: ['adapters/tron', 'config.ts', 'environment.ts', 'tron-environment.ts'] },
  dev: { rooms: ['domain', 'crypto', 'db', 'commands', 'config.ts', 'environment.ts', 'run-process.ts'] },
};
