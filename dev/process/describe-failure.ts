import { inspect } from 'node:util';

/** A failure for a person to read: our own errors as their messages and causes, anything else in full. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error) || (error.constructor !== Error && error.name !== 'ConfigurationError')) {
    return inspect(error);
  }
  if (!(error.cause instanceof Error)) return error.message;
  return `${error.message}\n  (${error.cause.message})`;
}
