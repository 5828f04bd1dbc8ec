import { z } from 'zod';
import type { ApiError } from '../domain/api-error.ts';
import { ERROR_CODES, ERROR_TYPES, ERRORS } from '../domain/error-catalogue.ts';

const ErrorIssue = z
  .object({
    path: z.string().describe('The field, query parameter or header that is wrong.'),
    message: z.string().describe('What is wrong with it.'),
  })
  .meta({ id: 'ErrorIssue', description: 'One thing that is wrong with a request.' });

export const ErrorCode = z.enum(ERROR_CODES).meta({
  id: 'ErrorCode',
  description: 'What went wrong. Branch on this: codes do not change.',
});

/** The body of every error (docs/partners/errors.md). */
export const ErrorBody = z
  .object({
    error: z
      .object({
        type: z.enum(ERROR_TYPES).meta({ id: 'ErrorType', description: 'The kind of error.' }),
        code: ErrorCode,
        message: z.string().describe('What went wrong and what to do, for people to read. It can change.'),
        param: z.string().optional().describe('The first field, query parameter or header that is wrong.'),
        issues: z.array(ErrorIssue).optional().describe('Everything that is wrong with the request.'),
        request_id: z.string().describe('Quote it if you contact us about the error. Prefix `req_`.'),
      })
      .describe('The error.'),
  })
  .meta({ id: 'Error', description: 'The body of every error.' });
export type ErrorBody = z.infer<typeof ErrorBody>;

export function presentError(error: ApiError, requestId: string): ErrorBody {
  const { issues } = error.detail;
  return {
    error: {
      type: ERRORS[error.code].type,
      code: error.code,
      message: error.message,
      ...(issues?.[0] && { param: issues[0].path, issues }),
      request_id: requestId,
    },
  };
}
