import type { Client } from '@temporalio/client';
import type { NativeConnection, Worker, WorkflowBundleOption } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Metric } from 'prom-client';
import type { Config } from '../config/service.ts';
import type { KeyRing } from '../crypto/key-ring.ts';
import type { Orm, ServiceDatabase } from '../db/orm.ts';

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
 * What a worker process does for one task queue: its workflows and activities, and the background work that belongs to them.
 */
export interface WorkerPart {
  worker: Worker;
  metrics: Metric[];
  /** Called when the process begins to stop, to end work that need not be waited for. */
  leave?(): void;
  /** Called when the worker has ended. */
  stop(): Promise<void>;
}
