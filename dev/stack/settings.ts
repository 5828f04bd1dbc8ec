import { z } from 'zod';
import { Environment } from '../../platform/config/environment.ts';
import { parseEnvironment } from '../../platform/config/read-environment.ts';
import { serviceProblems } from '../../platform/config/service.ts';
import { Port } from '../../platform/config/values.ts';

const Loopback = z.enum(
  ['127.0.0.1', 'localhost', '::1'],
  'must be a loopback address for npm start; `npm run api` takes any address',
);

/** The stack's variables and the service's, so that all their problems are reported together. */
const StackEnvironment = Environment.extend({
  HOST: Loopback.default('127.0.0.1'),
  OPERATIONS_HOST: Loopback.optional(),
  WORKER_HOST: Loopback.optional(),
  // Unset means a free port, so that two stacks can run side by side.
  WORKER_PORT: Port.optional(),
  DATA_DIR: z.string().default('.data'),
  POSTGRES_PORT: Port.optional(),
  TEMPORAL_PORT: Port.optional(),
  TEMPORAL_UI_PORT: Port.optional(),
  TEMPORAL_CLI: z.string().optional(),
}).partial({ DATABASE_URL: true, TEMPORAL_ADDRESS: true, ENCRYPTION_KEYS: true });

/** The environment as the local stack reads it (docs/operating.md, "Configuration"). */
export type Settings = ReturnType<typeof readSettings>;

interface Brought {
  /** Whether the stack brings its own TRON node. */
  withTron?: boolean | undefined;
  /** The fake issuer that it brings. */
  network?: string | undefined;
}

/**
 * @throws ConfigurationError naming every problem of the stack and of the service; an empty value counts as
 * unset.
 */
export function readSettings(env: NodeJS.ProcessEnv, brought: Brought = {}) {
  const { set, values } = parseEnvironment(StackEnvironment, env, (set) => broughtProblems(set, brought));
  const { TEMPORAL_API_KEY, ALLOW_OWNER_LOGIN, ENCRYPTION_KEYS, CODEC_KEYS } = set;
  // These as the text that was set, since they are passed on.
  return { ...values, TEMPORAL_API_KEY, ALLOW_OWNER_LOGIN, ENCRYPTION_KEYS, CODEC_KEYS };
}

/** The problems if the stack configures deposits or the card network itself. */
function broughtProblems(set: NodeJS.ProcessEnv, { withTron = false, network }: Brought): string[] {
  const setBy = (name: string): string | null => {
    if (withTron && name.startsWith('TRON_')) return '--with-tron';
    return network !== undefined && /^(CARD_NETWORK$|INCREASE_|LITHIC_)/.test(name) ? '--network' : null;
  };
  const names = Object.keys(set);
  // The stack has its own rule for HOST, and PUBLIC_URL would not help.
  const own = names.filter((name) => setBy(name) === null && name !== 'HOST');
  return [
    ...serviceProblems(Object.fromEntries(own.map((name) => [name, set[name]]))),
    ...names
      .filter((name) => setBy(name) !== null)
      .map((name) => `${name}: ${setBy(name)} sets it; unset it, or start without ${setBy(name)}`),
  ];
}
