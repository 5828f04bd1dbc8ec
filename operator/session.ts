import type { Client, Connection } from '@temporalio/client';
import type { Operator, OperatorContext } from '../commands/accounts/operator-context.ts';
import type { OperatorConfig } from '../config/operator.ts';
import { ConfigurationError } from '../config/service.ts';
import { KeyRing } from '../crypto/key-ring.ts';
import { OPERATOR_ROLE } from '../db/login.ts';
import type { Orm } from '../db/orm.ts';
import { OPERATOR_LIMITS } from '../db/session.ts';
import { cardsTaskQueue } from '../domain/task-queues.ts';

/**
 * What verbs work with. Each part is loaded and opened when it is first asked for: what a verb does not use may be away,
 * and costs it no time.
 */
export interface Session {
  readonly config: OperatorConfig;
  readonly taskQueue: string;
  orm(): Promise<Orm>;
  operator(): Promise<Operator>;
  /** Null where it is not known. */
  keys(): KeyRing | null;
  /** @throws ConfigurationError where the key ring is not known. */
  withKeys(): Promise<OperatorContext>;
  /** @throws ConfigurationError where Temporal's address is not known. */
  temporal(): Promise<Client>;
  close(): Promise<void>;
}

export function createSession(
  readConfig: () => OperatorConfig,
  actor: string,
  err: (text: string) => void,
): Session {
  let config: OperatorConfig | undefined;
  let orm: Promise<Orm> | undefined;
  let connection: Connection | undefined;

  const session: Session = {
    get config() {
      config ??= readConfig();
      return config;
    },
    get taskQueue() {
      return cardsTaskQueue(session.config.taskQueuePrefix);
    },
    orm() {
      orm ??= openAsOperator(session.config, err);
      return orm;
    },
    operator: async () => ({ orm: await session.orm(), actor }),
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
      return { ...(await session.operator()), ring };
    },
    async temporal() {
      const { temporal } = session.config;
      if (temporal === null) throw new ConfigurationError(['TEMPORAL_ADDRESS: is required for this command']);
      const { Client, Connection } = await import('@temporalio/client');
      connection ??= Connection.lazy(temporal.connectionOptions);
      return new Client({ connection, namespace: temporal.namespace ?? 'default' });
    },
    async close() {
      await connection?.close();
      // One that could not be opened has told so, and left nothing to close.
      await orm?.then(
        (open) => open.close(),
        () => {},
      );
    },
  };
  return session;
}

async function openAsOperator(
  { databaseUrl, allowOwnerLogin }: OperatorConfig,
  err: (text: string) => void,
): Promise<Orm> {
  const { openOrm } = await import('../db/orm.ts');
  return openOrm({
    databaseUrl,
    poolSize: 2,
    applicationName: 'card-issuing-operator',
    limits: OPERATOR_LIMITS,
    role: OPERATOR_ROLE,
    onOwnerLogin: allowOwnerLogin ? (why) => err(`warning: ${why} (ALLOW_OWNER_LOGIN)\n`) : undefined,
  });
}
