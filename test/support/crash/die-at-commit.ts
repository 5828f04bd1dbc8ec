import type pg from 'pg';
import { aroundCommits } from './around-commits.ts';

/**
 * For `node --import`: right before or right after its nth COMMIT, kills the process, as by kill -9, freezes it, or cuts the
 * COMMIT's connection, so that nobody knows its result.
 * DIE_AT_COMMIT: `before 1`, `after 2`, `cut before 1`, `freeze before 1` …
 */
const [when, nth, how] = (process.env.DIE_AT_COMMIT ?? '').replace(/^(cut|freeze) (.*)$/, '$2 $1').split(' ');
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
  if (how !== 'cut') {
    process.kill(process.pid, how === 'freeze' ? 'SIGSTOP' : 'SIGKILL');
    return;
  }
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  throw new Error('Connection terminated unexpectedly');
}
