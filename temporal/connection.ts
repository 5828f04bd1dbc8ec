import {
  Connection,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
} from '@temporalio/client';

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number];

/** The API's connection to Temporal, made when it is first needed: reads work while Temporal is away. */
export function connectLazily(options: ConnectionOptions | undefined): Connection {
  return Connection.lazy({
    ...options,
    interceptors: [
      // About a second of retries: a partner can try again for longer than a request should hang.
      makeGrpcRetryInterceptor(defaultGrpcRetryOptions({ maxAttempts: 4 })),
      ignoreRetriesAfterClose,
    ],
  });
}

/**
 * A retry that comes due after the connection was closed throws in a timer, where nobody can catch it, and would end the
 * process in the middle of its stop. Its call gets no answer instead: whoever made it has ended, or the closing would
 * have waited.
 */
const ignoreRetriesAfterClose: Interceptor = (options, nextCall) => {
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
