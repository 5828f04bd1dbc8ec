import type pg from 'pg';
import { aroundCommits } from './around-commits.ts';

/**
 * For `node --import`: right before or right after its nth COMMIT, kills the process, as by kill -9, or cuts the
 * connection that the COMMIT goes by, so that nobody hears what became of it.
 * DIE_AT_COMMIT: `before 1`, `after 2`, `cut before 1` …
 */
const [when, nth, cuts] = (process.env.DIE_AT_COMMIT ?? '').replace(/^cut (.*)$/, '$1 cut').split(' ');
let commits = 0;

aroundCommits(
  async (client) => {
    commits += 1;
    dieIf('before', client);
  },
  async (client) => dieIf('after', client),
);

function dieIf(now: string, client: pg.Client): void {
  if (now !== when || commits !== Number(nth)) return;
  if (cuts === undefined) process.kill(process.pid, 'SIGKILL');
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  throw new Error('Connection terminated unexpectedly');
}
