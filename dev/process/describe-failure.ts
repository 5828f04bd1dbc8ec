import { inspect } from 'node:util';

/** A failure for a person: our own errors by what they say, and what caused them; a fault with all there is. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error) || (error.constructor !== Error && error.name !== 'ConfigurationError')) {
    return inspect(error);
  }
  if (!(error.cause instanceof Error)) return error.message;
  return `${error.message}\n  (${error.cause.message})`;
}
