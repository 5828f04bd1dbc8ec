import { type Logger, pino } from 'pino';

/** JSON lines on standard output. What may be personal or secret is never handed to it; this is the second net. */
export function createLogger(process: 'api' | 'worker', level: string): Logger {
  return pino({
    level,
    base: { process },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: ['authorization', '*.authorization', '*.headers'],
  });
}
