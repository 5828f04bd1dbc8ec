import { type LogEntry, Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';

const LEVELS = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;

/** Sends what the Temporal SDK says through our log; once a process, before its first worker. */
export function installRuntime(logger: Logger): void {
  const write = (level: LogEntry['level'], message: string, meta?: Record<string, unknown>) =>
    logger[LEVELS[level]]({ temporal: meta }, message);
  Runtime.install({
    logger: {
      log: write,
      trace: (message, meta) => write('TRACE', message, meta),
      debug: (message, meta) => write('DEBUG', message, meta),
      info: (message, meta) => write('INFO', message, meta),
      warn: (message, meta) => write('WARN', message, meta),
      error: (message, meta) => write('ERROR', message, meta),
    },
  });
}
