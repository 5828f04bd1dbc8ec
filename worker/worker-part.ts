import type { Client } from '@temporalio/client';
import {
  type NativeConnection,
  Worker,
  type WorkerOptions,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Metric } from 'prom-client';
import type { Config } from '../platform/config/service.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import type { Orm, ServiceDatabase } from '../platform/db/orm.ts';
import { deploymentOptions } from '../platform/temporal/worker-deployment.ts';

/** The options that every part of a worker process gets. */
export interface PartOptions {
  config: Config;
  orm: Orm;
  direct: ServiceDatabase['direct'];
  ring: KeyRing;
  connection: NativeConnection;
  client: Client;
  workflowBundle: WorkflowBundleOption;
  logger: Logger;
}

/**
 * What a worker process does for one task queue: its workflows and activities, and the background work that
 * belongs to them.
 */
export interface WorkerPart {
  worker: Worker;
  metrics: Metric[];
  /** Called when the process begins to stop, to end work that nothing waits for. */
  leave?(): void;
  /** Called when the worker has ended. */
  stop(): Promise<void>;
}

/**
 * A part's Temporal worker, with what all parts have in common: connection, workflows, version, and the time
 * to stop in.
 * @param own.versioning what becomes of its workflows under a new version (docs/decisions/worker-versions.md)
 */
export function createPartWorker(
  { config, connection, client, workflowBundle }: PartOptions,
  {
    versioning,
    ...own
  }: Omit<WorkerOptions, 'connection' | 'namespace'> & { versioning: 'PINNED' | 'AUTO_UPGRADE' },
): Promise<Worker> {
  return Worker.create({
    connection,
    namespace: client.options.namespace,
    workflowBundle,
    ...deploymentOptions(config.workerVersion, versioning),
    shutdownGraceTime: '5s',
    shutdownForceTime: '10s',
    ...own,
  });
}
