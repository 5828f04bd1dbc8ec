import { isGrpcServiceError } from '@temporalio/client';

const GRPC_CANCELLED = 1;
const GRPC_DEADLINE_EXCEEDED = 4;
const GRPC_RESOURCE_EXHAUSTED = 8;
const GRPC_UNAVAILABLE = 14;
const AWAY = [GRPC_CANCELLED, GRPC_DEADLINE_EXCEEDED, GRPC_RESOURCE_EXHAUSTED, GRPC_UNAVAILABLE];

/** Whether Temporal did not answer, or has too much to do: what it was asked for is neither done nor refused. */
export function isTemporalAway(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (isGrpcServiceError(cause)) return AWAY.includes(cause.code);
  }
  return false;
}
