import { type LogEntry, Runtime, type RuntimeOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import { describeError } from '../process/describe-error.ts';
import { sdkMetrics } from './sdk-metrics.ts';

const LEVELS = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;

/** The port of the SDK's metrics is random, so a few attempts find a free one. */
const ATTEMPTS = 5;

let isInstalled = false;

/**
 * Starts the Temporal SDK's runtime, unless it is running, with our log and our metrics. Call it before each
 * worker starts, because the runtime ends with the last one. A process keeps its first logger.
 */
export function installRuntime(logger: Logger): void {
  for (let attempt = 1; ; attempt++) {
    try {
      if (isInstalled) Runtime.instance();
      else Runtime.install(runtimeOptions(logger));
      isInstalled = true;
      return;
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

function runtimeOptions(logger: Logger): RuntimeOptions {
  const write = (level: LogEntry['level'], message: string, meta: Record<string, unknown> = {}) => {
    // If the SDK can't decode a task, it logs the whole task, including payloads.
    const { workflowId, error, task: _task, taskEncoded: _taskEncoded, ...temporal } = meta;
    const described = error === undefined ? undefined : describeError(error);
    logger[LEVELS[level]]({ workflowId, error: described, temporal }, message);
  };
  return {
    logger: {
      log: write,
      trace: (message, meta) => write('TRACE', message, meta),
      debug: (message, meta) => write('DEBUG', message, meta),
      info: (message, meta) => write('INFO', message, meta),
      warn: (message, meta) => write('WARN', message, meta),
      error: (message, meta) => write('ERROR', message, meta),
    },
    telemetryOptions: { metrics: sdkMetrics },
    // The process stops its parts in its own order (platform/process/run-process.ts).
    shutdownSignals: [],
  };
}
