import { randomBytes } from 'node:crypto';
import { runOperator } from '../../../operator/program.ts';
import { readOperatorConfig } from '../../../platform/config/operator.ts';
import type { Config } from '../../../platform/config/service.ts';
import { createTestDatabase, operatorUrlOf } from '../postgres.ts';

export const ACTOR = 'tester@here';

export interface Outcome {
  code: number;
  out: string;
  err: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the contract promises.
  json: any;
}

export type Operate = (...args: string[]) => Promise<Outcome>;

/**
 * Runs command lines in this process, with --json, in the environment of an operator.
 * @param confirm answers questions; left out if nobody is there to answer
 */
export function operateIn(
  env: NodeJS.ProcessEnv,
  resolveWaitMs = 15_000,
  confirm?: (question: string) => Promise<boolean>,
  reconcileGraceMs?: number,
): Operate {
  return async (...args) => {
    let out = '';
    let err = '';
    const code = await runOperator([...args, '--json'], {
      readConfig: () => readOperatorConfig(env),
      actor: ACTOR,
      out: (text) => {
        out += text;
      },
      err: (text) => {
        err += text;
      },
      resolveWaitMs,
      ...(confirm && { confirm }),
      ...(reconcileGraceMs && { reconcileGraceMs }),
    });
    return { code, out, err, json: out === '' ? undefined : JSON.parse(out) };
  };
}

/** An operator's environment with a new database and without Temporal. */
export async function operatorEnvironment(): Promise<NodeJS.ProcessEnv> {
  return {
    DATABASE_URL: operatorUrlOf(await createTestDatabase()),
    ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  };
}

/** An operator's environment beside a service that runs with `config`. */
export function environmentOf(config: Config): NodeJS.ProcessEnv {
  return {
    DATABASE_URL: operatorUrlOf(config.databaseUrl),
    TEMPORAL_ADDRESS: config.temporal.connectionOptions?.address,
    TEMPORAL_NAMESPACE: config.temporal.namespace,
    TASK_QUEUE_PREFIX: config.taskQueuePrefix,
    WEBHOOK_ALLOW_LOOPBACK_HTTP: String(config.webhookAllowLoopbackHttp),
    WEBHOOK_RETRY_SCHEDULE: config.webhookDelaysMs.map((delayMs) => `${delayMs}ms`).join(','),
    CARD_NETWORK: config.cardNetwork,
    ENCRYPTION_KEYS: config.encryptionKeys
      .map((key) => `${key.id}:${key.secret.toString('base64')}`)
      .join(','),
  };
}

/** The newest audit entry, without what differs from run to run. */
export async function lastAudit(operate: Operate): Promise<unknown> {
  const { json } = await operate('audit', 'list');
  const { actor, action, subject, detail } = json[0] ?? {};
  return { actor, action, subject, detail };
}
