import { v5 } from 'uuid';

const NAMESPACE = '1b8a1c0e-6a0f-4e0b-9a43-6d1f6f3f0c52';

/** UUIDv5 of the operation and its step: a retry brings the same id, so it has one effect. */
export function transferId(operationId: string, step: string): string {
  return v5(step, v5(operationId, NAMESPACE));
}
