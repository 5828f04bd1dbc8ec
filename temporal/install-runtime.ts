import { type LogEntry, Runtime, type RuntimeOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import { describeError } from '../process/describe-error.ts';
import { sdkMetrics } from './sdk-metrics.ts';

const LEVELS = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;

let isInstalled = false;

/** Sends what the Temporal SDK says through our log, and has it count, before a process' first worker; later calls do nothing. */
export function installRuntime(logger: Logger): void {
  if (isInstalled) return;
  isInstalled = true;
  const write = (level: LogEntry['level'], message: string, meta: Record<string, unknown> = {}) => {
    // A task, as the SDK logs one that it can't read, has payloads in it.
    const { workflowId, error, task: _task, taskEncoded: _taskEncoded, ...temporal } = meta;
    const described = error === undefined ? {} : { error: describeError(error) };
    logger[LEVELS[level]](
      { ...(workflowId !== undefined && { workflowId }), ...described, temporal },
      message,
    );
  };
  const options: RuntimeOptions = {
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
  try {
    Runtime.install(options);
  } catch {
    // Its port was taken; the next is another one.
    Runtime.install(options);
  }
}
