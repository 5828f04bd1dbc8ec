import {
  Connection,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  isGrpcServiceError,
  makeGrpcRetryInterceptor,
} from '@temporalio/client';
import type { TemporalPlugin } from './plugin.ts';

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number];

/**
 * The API's connection to Temporal. It is opened when it is first needed, so that reads work while Temporal
 * is down.
 */
export function connectLazily(options: ConnectionOptions | undefined, plugin: TemporalPlugin): Connection {
  return Connection.lazy({
    ...options,
    plugins: [plugin],
    interceptors: [
      // About a second of retries: a request should not hang for longer, and the partner can try again.
      makeGrpcRetryInterceptor(defaultGrpcRetryOptions({ maxAttempts: 4 })),
      ignoreRetriesAfterClose,
    ],
  });
}

/**
 * A retry after the connection was closed throws in a timer, where nobody can catch it, and would crash the
 * process while it stops. The call gets no response instead: its caller has ended, or closing would have
 * waited for it.
 */
export const ignoreRetriesAfterClose: Interceptor = (options, nextCall) => {
  try {
    return nextCall(options) as ReturnType<Interceptor>;
  } catch (error) {
    if (!(error instanceof Error) || error.message !== 'Channel has been shut down') throw error;
    return DEAD_CALL as unknown as ReturnType<Interceptor>;
  }
};

const DEAD_CALL = {
  start() {},
  sendMessage() {},
  sendMessageWithContext() {},
  startRead() {},
  halfClose() {},
  cancelWithStatus() {},
  getPeer: () => 'closed',
  getAuthContext: () => null,
};

const GRPC_CANCELLED = 1;
const GRPC_DEADLINE_EXCEEDED = 4;
const GRPC_RESOURCE_EXHAUSTED = 8;
const GRPC_UNAVAILABLE = 14;
const AWAY = [GRPC_CANCELLED, GRPC_DEADLINE_EXCEEDED, GRPC_RESOURCE_EXHAUSTED, GRPC_UNAVAILABLE];

/** Whether Temporal didn't respond, or is overloaded. The request may or may not have been carried out. */
export function isTemporalAway(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (isGrpcServiceError(cause)) return AWAY.includes(cause.code);
  }
  return false;
}
