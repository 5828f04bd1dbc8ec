import { ApplicationFailure, DefaultFailureConverter, TemporalFailure } from '@temporalio/common';
import { describeError } from '../process/describe-error.ts';

type Convert = DefaultFailureConverter['errorToFailureInner'];

/**
 * Converts errors for histories, inside and outside the workflows' sandbox. It leaves out foreign messages,
 * which can quote a row or a payload, and thrown values. Messages and stack traces travel as payloads, so the
 * codec encrypts them.
 */
class SafeFailureConverter extends DefaultFailureConverter {
  constructor() {
    super({ encodeCommonAttributes: true });
  }

  override errorToFailureInner(...[error, ...rest]: Parameters<Convert>): ReturnType<Convert> {
    const failure = super.errorToFailureInner(withoutForeignText(error), ...rest);
    // The stack trace of our own failures says nothing. A failure that came from a history stays as it is
    // there.
    const isOurs = error instanceof ApplicationFailure && error.failure === undefined;
    return isOurs ? { ...failure, stackTrace: '' } : failure;
  }
}

export const failureConverter = new SafeFailureConverter();

function withoutForeignText(error: unknown): Error {
  if (error instanceof ApplicationFailure && error.failure === undefined) {
    // A failure that the SDK wraps around an error repeats that error's message.
    const { type, message, nonRetryable, nextRetryDelay, category, cause } = error;
    const met = isForeign(cause) ? cause : Object.assign(new Error(message), { name: type ?? 'Error' });
    return ApplicationFailure.create({
      message: describeError(met).summary,
      nonRetryable: nonRetryable ?? false,
      nextRetryDelay: nextRetryDelay ?? undefined,
      type: type ?? undefined,
      category: category ?? undefined,
    });
  }
  if (error instanceof TemporalFailure) return error;
  const { name, summary, stack = '' } = describeError(error);
  return Object.assign(new Error(name === 'Error' ? summary : `${name}: ${summary}`), { stack });
}

function isForeign(cause: unknown): boolean {
  return cause !== undefined && !(cause instanceof TemporalFailure);
}
