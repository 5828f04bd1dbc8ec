import { realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { PostgresUser } from './run-as.ts';

const EXECUTE = 0o1;

/** Whether this user may enter every folder on the way to a program or folder, and it itself. */
export async function mayReach(user: PostgresUser, path: string): Promise<boolean> {
  for (let place = await realpath(path); ; place = dirname(place)) {
    const { mode, uid, gid } = await stat(place);
    const shift = uid === user.uid ? 6 : gid === user.gid ? 3 : 0;
    if (((mode >> shift) & EXECUTE) === 0) return false;
    if (place === dirname(place)) return true;
  }
}
