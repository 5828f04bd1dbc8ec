/** A file, a folder, `folder/*` for the files directly in it, or what files are named. */
export type Place = string | RegExp;

/**
 * What the files of a room may import, besides each other. `types` may only be imported with `import type`.
 */
export interface Direction {
  rooms: readonly Place[];
  types?: readonly Place[];
  /** What it may import of its own room; all if left out. */
  own?: readonly Place[];
  /** npm packages and node:* modules. If left out, any. */
  packages?: readonly string[];
}

/** What a file's name allows or forbids, in every room. The first that matches applies. */
export interface Role {
  name: RegExp;
  /** Allowed besides what the room may import. */
  also?: readonly Place[];
  /** If given, only these of what the room may import; `onlyTypes` with `import type`. */
  only?: readonly Place[];
  onlyTypes?: readonly Place[];
}

/** Files with a name in any room: `rules.ts`, `fees-rules.ts`. */
const named = (name: string) => new RegExp(`(?:^|[/-])${name}\\.ts$`);

const TEMPORAL_WORKFLOW = ['@temporalio/workflow', '@temporalio/common'];

/**
 * The ids, signals and inputs of workflows: whoever starts one or sends to it imports these, never its code.
 */
const MESSAGES = 'workflows/messages.ts';
/** What a card network can do, in our words. */
const SEAM = 'issuers/card-network.ts';

// Each capability may import those before it.
const REQUESTS = ['domain', 'platform', 'ledger', MESSAGES];
const ACCOUNTS = [...REQUESTS, 'requests'];
const CARDS = [...ACCOUNTS, 'accounts', SEAM];
const PAYMENTS = [...CARDS, 'cards', 'issuers/simulated/fold.ts'];
const INBOX = [...PAYMENTS, 'payments', 'issuers/inbox'];
const EXPORTS = [...INBOX, 'issuers/true-ups', 'issuers/reconciliation', 'webhooks', 'deposits'];
const ALL = [...EXPORTS, 'exports', 'issuers'];

/** The frames that the roots put around the capabilities' routes, nouns and jobs. */
const HTTP = ['api/http', 'api/openapi/tags.ts'];
const COMMAND_LINE = ['errors', 'flag-values', 'render', 'session', 'verbs'].map(
  (name) => `operator/${name}.ts`,
);
const LOOPS = ['notify-in-turns', 'worker-part'].map((name) => `worker/${name}.ts`);
const FRAME = ['domain', 'platform', 'ledger', 'requests', 'accounts', MESSAGES];

/** docs/ARCHITECTURE.md, "Import directions". The longest entry that a file's path begins with applies. */
export const DIRECTIONS: Record<string, Direction> = {
  domain: { rooms: [], packages: ['zod', 'ipaddr.js', 'fastest-levenshtein'] },
  platform: { rooms: ['domain'], own: [] },
  'platform/crypto': { rooms: ['domain'] },
  'platform/process': { rooms: ['domain'] },
  'platform/config': { rooms: ['domain', 'platform/crypto', 'platform/process'] },
  'platform/db': { rooms: ['domain', 'platform/crypto', 'platform/config', 'platform/process'] },
  // Both are bundled with the workflows.
  'platform/temporal/carried-headers.ts': { rooms: [], own: [], packages: TEMPORAL_WORKFLOW },
  'platform/temporal/search-attributes.ts': { rooms: [], own: [], packages: TEMPORAL_WORKFLOW },
  'platform/temporal': { rooms: ['domain', 'platform/crypto', 'platform/config', 'platform/process'] },
  'platform/monitoring': {
    rooms: ['domain', 'platform/crypto', 'platform/config', 'platform/process', 'platform/db'],
  },
  // The list of all entities, which stand in their capabilities and import nothing of them.
  'platform/db/entities.ts': { rooms: ['domain', named('tables')] },
  // It says what waits for a person in its own room's words.
  'platform/db/attention.ts': {
    rooms: ['domain', 'platform/config', 'platform/process', 'platform/monitoring/attention-item.ts'],
  },
  ledger: { rooms: ['domain', 'platform'] },
  requests: { rooms: REQUESTS },
  accounts: { rooms: ACCOUNTS },
  cards: { rooms: CARDS },
  payments: { rooms: PAYMENTS },
  webhooks: { rooms: [...ACCOUNTS, 'accounts'] },
  'webhooks/client': { rooms: ['domain', 'platform'] },
  deposits: { rooms: [...ACCOUNTS, 'accounts'] },
  'deposits/tron': { rooms: ['domain', 'platform'] },
  [SEAM]: { rooms: ['domain'], own: [] },
  // What a card network's client may import: nothing of ours but words, tools and the seam.
  issuers: {
    rooms: ['domain', 'platform'],
    own: ['issuers/*', 'issuers/simulated', 'issuers/increase', 'issuers/lithic'],
  },
  'issuers/inbox': { rooms: INBOX },
  'issuers/true-ups': { rooms: INBOX },
  'issuers/reconciliation': { rooms: [...INBOX, 'issuers/true-ups'] },
  // It asks the card network, as the worker does.
  'issuers/reconciliation/operator.ts': { rooms: [...INBOX, 'issuers', ...COMMAND_LINE] },
  exports: { rooms: EXPORTS },
  // The roots put the parts together, and pass in what the others may not import.
  activities: { rooms: ALL },
  api: { rooms: ALL },
  'api/server.ts': { rooms: [...ALL, 'activities', 'api'] },
  'api/http': { rooms: [...FRAME, 'api/openapi/tags.ts'] },
  'api/openapi': { rooms: ALL, own: ['api'] },
  worker: { rooms: [...ALL, 'activities'] },
  operator: { rooms: ALL },
  'operator/codec': { rooms: ['platform'] },
  ...Object.fromEntries(
    [...COMMAND_LINE, ...LOOPS].map((file) => [file, { rooms: FRAME, own: [...COMMAND_LINE, ...LOOPS] }]),
  ),
  // A workflow's imports are evaluated for each execution. zod alone, which most of the domain imports, takes
  // 2 ms.
  workflows: {
    rooms: [
      'domain/scan-lag.ts',
      'platform/temporal/carried-headers.ts',
      'platform/temporal/search-attributes.ts',
    ],
    // What an activity takes and returns.
    types: ['domain', named('activities')],
    packages: TEMPORAL_WORKFLOW,
  },
  // Published by itself, so it imports nothing of the service and needs no package.
  client: { rooms: [], packages: ['node:crypto', 'node:timers/promises', 'node:util'] },
  // It runs in browsers, and asks what every partner can ask.
  workbench: {
    rooms: ['client/http.ts', 'client/errors.ts', 'client/list.ts', 'client/generated'],
    packages: [
      'react',
      'react-dom/client',
      '@tanstack/react-router',
      '@tanstack/react-query',
      'uplot',
      'uplot/dist/uPlot.min.css',
      'lean-qr',
      '@fontsource-variable/inter/wght.css',
    ],
  },
  'workbench/vite.config.ts': { rooms: [], own: [], packages: ['vite'] },
  dev: { rooms: [...ALL, 'client'] },
};

export const ROLES: readonly Role[] = [
  // Pure decisions, and what partners see: no I/O.
  {
    name: named('(?:rules|resource)'),
    // What partners see is one document: an event shows whole cards and deposits.
    also: [named('resource'), named('examples')],
    only: ['domain', named('(?:rules|resource|examples)')],
    onlyTypes: [
      'domain',
      'ledger',
      named('(?:rules|resource)'),
      'platform/db/entities.ts',
      'platform/db/columns.ts',
    ],
  },
  {
    name: named('examples'),
    also: [named('(?:examples|resource)')],
    only: ['domain', named('examples')],
    onlyTypes: [named('resource')],
  },
  { name: named('tables'), only: ['domain', named('rules')] },
  { name: named('routes'), also: [...HTTP, named('examples')] },
  { name: named('operator'), also: COMMAND_LINE },
  { name: named('jobs'), also: LOOPS },
];
