import type { Client, Connection } from '@temporalio/client';
import type { OperatorConfig } from '../platform/config/operator.ts';
import { ConfigurationError } from '../platform/config/read-environment.ts';
import {
  cardsTaskQueue,
  prefixedTaskQueue,
  WORKER_QUEUES,
  type WorkerQueue,
} from '../platform/config/task-queues.ts';
import { KeyRing } from '../platform/crypto/key-ring.ts';
import { OPERATOR_ROLE } from '../platform/db/login.ts';
import type { Orm } from '../platform/db/orm.ts';
import { OPERATOR_LIMITS } from '../platform/db/session.ts';
import type { Operator, OperatorContext } from '../requests/operator-context.ts';
import { isTemporalError } from './errors.ts';

/**
 * The connections that verbs use. Each is loaded and opened when a verb first needs it, so what a verb does
 * not use costs no time and does not have to be running.
 */
export interface Session {
  readonly config: OperatorConfig;
  readonly taskQueue: string;
  orm(): Promise<Orm>;
  operator(): Promise<Operator>;
  /**
   * As whoever DATABASE_URL logs in, who has to be the owner of the database; on the local stack, as its
   * owner.
   */
  owner(): Promise<Operator>;
  /** Null if ENCRYPTION_KEYS is not set. */
  keys(): KeyRing | null;
  /** @throws ConfigurationError if ENCRYPTION_KEYS is not set. */
  withKeys(): Promise<OperatorContext>;
  /** @throws ConfigurationError if TEMPORAL_ADDRESS is not set. */
  temporal(): Promise<Client>;
  /** The status of a workflow; null, with a warning on standard error, if Temporal can't say. */
  workflowStatus(workflowId: string): Promise<string | null>;
  /** How many workers poll a queue, or any of them; null if Temporal can't say. */
  countWorkers(queue: WorkerQueue | null): Promise<number | null>;
  close(): Promise<void>;
}

const STATUS_TIMEOUT_MS = 3_000;

export function createSession(
  readConfig: () => OperatorConfig,
  actor: string,
  err: (text: string) => void,
): Session {
  let config: OperatorConfig | undefined;
  let orm: Promise<Orm> | undefined;
  let ownerOrm: Promise<Orm> | undefined;
  let connection: Connection | undefined;

  /** Null, with a warning, if Temporal does not answer in time. */
  async function askTemporal<T>(ask: (client: Client) => Promise<T>, warning: string): Promise<T | null> {
    const client = await session.temporal();
    try {
      return await client.withDeadline(Date.now() + STATUS_TIMEOUT_MS, () => ask(client));
    } catch (error) {
      if (!(await isTemporalError(error))) throw error;
      err(warning);
      return null;
    }
  }

  const session: Session = {
    get config() {
      config ??= readConfig();
      return config;
    },
    get taskQueue() {
      return cardsTaskQueue(session.config.taskQueuePrefix);
    },
    orm() {
      orm ??= openAsOperator(session.config, actor, err);
      return orm;
    },
    operator: async () => ({ orm: await session.orm(), actor: session.config.operator ?? actor }),
    async owner() {
      ownerOrm ??= openAsOwner(session.config, actor);
      return { orm: await ownerOrm, actor: session.config.operator ?? actor };
    },
    keys() {
      const { encryptionKeys } = session.config;
      return encryptionKeys && new KeyRing(encryptionKeys);
    },
    async withKeys() {
      const ring = session.keys();
      if (ring === null) {
        throw new ConfigurationError([
          'ENCRYPTION_KEYS: is required for this command; use the same as the API',
        ]);
      }
      const operator = await session.operator();
      const { loadKeptKeys } = await import('../platform/db/kept-keys.ts');
      await loadKeptKeys(operator.orm, ring);
      return { ...operator, ring };
    },
    async temporal() {
      const { temporal } = session.config;
      if (temporal === null) throw new ConfigurationError(['TEMPORAL_ADDRESS: is required for this command']);
      const { Client, Connection } = await import('@temporalio/client');
      const { TemporalPlugin } = await import('../platform/temporal/plugin.ts');
      const plugin = new TemporalPlugin({ codecKeys: session.config.codecKeys, logger: null });
      connection ??= Connection.lazy({ ...temporal.connectionOptions, plugins: [plugin] });
      return new Client({ connection, namespace: temporal.namespace ?? 'default' });
    },
    async workflowStatus(workflowId) {
      const address = session.config.temporal?.connectionOptions.address;
      if (address === undefined) {
        err("TEMPORAL_ADDRESS is not set, so the workflow's status is unknown.\n");
        return null;
      }
      const { readWorkflowStatus } = await import('../requests/claimed-workflow.ts');
      const unknown = `Temporal does not respond at ${address}, so the workflow's status is unknown.\n`;
      return askTemporal((client) => readWorkflowStatus(client, workflowId), unknown);
    },
    async countWorkers(queue) {
      if (session.config.temporal === null) return null;
      const { countWorkers } = await import('../platform/temporal/count-workers.ts');
      const prefix = session.config.taskQueuePrefix;
      return askTemporal(async (client) => {
        const counts = (queue === null ? WORKER_QUEUES : [queue]).map((name) =>
          countWorkers(client, prefixedTaskQueue(prefix, name)),
        );
        return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
      }, '');
    },
    async close() {
      await connection?.close();
      // If opening one failed, the verb has reported that, and there is nothing to close.
      for (const opened of [orm, ownerOrm]) {
        await opened?.then(
          (open) => open.close(),
          () => {},
        );
      }
    },
  };
  return session;
}

async function openAsOperator(
  { databaseUrl, allowOwnerLogin, operator }: OperatorConfig,
  actor: string,
  err: (text: string) => void,
): Promise<Orm> {
  const { openOrm } = await import('../platform/db/orm.ts');
  return openOrm({
    databaseUrl,
    poolSize: 2,
    applicationName: 'card-issuing-operator',
    limits: OPERATOR_LIMITS,
    role: OPERATOR_ROLE,
    settings: identity(actor, operator),
    onOwnerLogin: allowOwnerLogin ? (why) => err(`warning: ${why} (ALLOW_OWNER_LOGIN)\n`) : undefined,
  });
}

async function openAsOwner({ ownerDatabaseUrl, operator }: OperatorConfig, actor: string): Promise<Orm> {
  const { openOrm } = await import('../platform/db/orm.ts');
  return openOrm({
    databaseUrl: ownerDatabaseUrl,
    poolSize: 1,
    applicationName: 'card-issuing-operator',
    limits: OPERATOR_LIMITS,
    settings: identity(actor, operator),
    onOwnerLogin: () => {},
  });
}

/** What the database records with each change (docs/decisions/audit-chain.md). @param actor user@host */
function identity(actor: string, operator: string | null): Record<string, string> {
  const at = actor.lastIndexOf('@');
  const printable = (text: string) => text.replace(/[^\x20-\x7e]/g, '?').slice(0, 255);
  return {
    'card_issuing.operator': operator ?? '',
    'card_issuing.os_user': printable(actor.slice(0, at)),
    'card_issuing.host': printable(actor.slice(at + 1)),
  };
}
