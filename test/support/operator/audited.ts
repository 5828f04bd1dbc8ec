import assert from 'node:assert/strict';
import { ACTOR, lastAudit, type Operate } from './operate.ts';

/** Fails unless the newest entry of the audit log is this one. */
export async function assertAudited(
  operate: Operate,
  action: string,
  subject: string,
  detail: object,
  actor = ACTOR,
): Promise<void> {
  assert.deepEqual(await lastAudit(operate), { actor, action, subject, detail });
}
