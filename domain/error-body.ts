import { z } from 'zod';
import type { ApiError } from './api-error.ts';
import { ERRORS } from './error-catalogue.ts';

/** decisions.md, "Envelope": the body of every error. */
export const ErrorBody = z.object({
  error: z.object({
    type: z.string(),
    code: z.string(),
    message: z.string(),
    param: z.string().optional(),
    issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    request_id: z.string(),
  }),
});
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
