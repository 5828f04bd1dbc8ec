import {
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';

const GRPC_CANCELLED = 1;
const GRPC_DEADLINE_EXCEEDED = 4;
const GRPC_NOT_FOUND = 5;
const GRPC_RESOURCE_EXHAUSTED = 8;
const GRPC_FAILED_PRECONDITION = 9;
const GRPC_ABORTED = 10;
const GRPC_UNAVAILABLE = 14;

const OVER = [WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError, WorkflowUpdateFailedError];

/**
 * How a workflow stands whose update-with-start failed: `over` where it had ended before or ended under the update (as
 * when an operator terminates it), `pending` where the server gave the update up, for time or since a workflow task
 * failed under it (as when a signal comes in while the workflow completes).
 * @returns undefined where the error says nothing about the workflow: the server is out of reach, or does not like the
 * call.
 */
export function stateAfterError(error: unknown): 'over' | 'pending' | undefined {
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return 'pending';
  if (OVER.some((kind) => error instanceof kind)) return 'over';
  // The client passes on what befell one half of the call as the bare gRPC error, or as the cause of its own.
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (!isGrpcServiceError(cause)) continue;
    if (cause.code === GRPC_NOT_FOUND) return 'over';
    return [GRPC_FAILED_PRECONDITION, GRPC_ABORTED].includes(cause.code) ? 'pending' : undefined;
  }
  return undefined;
}

/** Whether Temporal did not answer, or has too much to do: what it was asked for is neither done nor refused. */
export function isTemporalAway(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (isGrpcServiceError(cause)) return AWAY.includes(cause.code);
  }
  return false;
}

const AWAY = [GRPC_CANCELLED, GRPC_DEADLINE_EXCEEDED, GRPC_RESOURCE_EXHAUSTED, GRPC_UNAVAILABLE];
