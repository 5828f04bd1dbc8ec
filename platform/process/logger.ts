import { type DestinationStream, type Logger, pino } from 'pino';
import { currentWork } from './work-context.ts';

/**
 * Logs JSON lines, to standard output by default. Each line names the request and the workflow it belongs to.
 * Callers never pass it personal or secret data; `redact` is a second line of defence.
 */
export function createLogger(
  process: 'api' | 'worker' | 'codec' | 'operator',
  level: string,
  destination: DestinationStream = pino.destination(1),
): Logger {
  return pino(
    {
      level,
      base: { process },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: ['authorization', '*.authorization', '*.headers'],
      mixin() {
        const { requestId, workflowId } = currentWork();
        return { ...(requestId && { requestId }), ...(workflowId && { workflowId }) };
      },
    },
    destination,
  );
}
