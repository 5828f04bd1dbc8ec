import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { ActivityInboundCallsInterceptor } from '@temporalio/worker';
import type { Logger } from 'pino';
import { describeError } from '../process/describe-error.ts';

/**
 * Lets no foreign text into a history: a database's or a library's message can quote a row. What an activity throws
 * becomes its kind alone; the log has the rest, without values.
 */
export function safeFailures(logger: Logger): ActivityInboundCallsInterceptor {
  return {
    async execute(input, next) {
      try {
        return await next(input);
      } catch (error) {
        if (error instanceof ApplicationFailure || error instanceof CancelledFailure) throw error;
        const described = describeError(error);
        logger.warn({ error: described }, 'an activity failed and will be retried');
        throw ApplicationFailure.create({ type: described.name, message: described.summary });
      }
    },
  };
}
