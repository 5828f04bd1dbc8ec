import { type LogEntry, Runtime, type RuntimeOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import { describeError } from '../process/describe-error.ts';
import { sdkMetrics } from './sdk-metrics.ts';

const LEVELS = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;

/** The port of the SDK's metrics is drawn: a few draws find a free one. */
const ATTEMPTS = 5;

let isInstalled = false;

/**
 * Starts the Temporal SDK's runtime unless it is running. It writes to our log and counts for our metrics. To be called
 * before each worker, since the runtime ends with the last one. The first logger of a process stays.
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
    // A task, as the SDK logs one that it can't read, has payloads in it.
    const { workflowId, error, task: _task, taskEncoded: _taskEncoded, ...temporal } = meta;
    const described = error === undefined ? {} : { error: describeError(error) };
    logger[LEVELS[level]](
      { ...(workflowId !== undefined && { workflowId }), ...described, temporal },
      message,
    );
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
    // The process stops its parts in its own order (process/run-process.ts).
    shutdownSignals: [],
  };
}
