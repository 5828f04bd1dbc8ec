import { hostname, userInfo } from 'node:os';

/** Who is recorded as having made a change: the user of the operating system, and the machine. */
export function currentActor(): string {
  return `${userName()}@${hostname()}`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch (error) {
    // In a container the user can have a number and no name.
    if ((error as NodeJS.ErrnoException).code === 'ERR_SYSTEM_ERROR') return `uid ${process.getuid?.()}`;
    throw error;
  }
}
