import { homedir } from 'node:os';
import { join } from 'node:path';

/** What is slow to get and good for every checkout of this user is kept here. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  const base = env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return join(base, 'virtual-card-issuing-api');
}
