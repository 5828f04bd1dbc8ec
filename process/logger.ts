import { type Logger, pino } from 'pino';

/** Logs JSON lines to standard output. Callers never pass it personal or secret data; `redact` is a second line of defence. */
export function createLogger(process: 'api' | 'worker', level: string): Logger {
  return pino({
    level,
    base: { process },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: ['authorization', '*.authorization', '*.headers'],
  });
}
