import { aroundCommits } from './around-commits.ts';

/**
 * For `node --import`: kills the process, as by kill -9, right before or right after its nth COMMIT.
 * DIE_AT_COMMIT: `before 1`, `after 2` …
 */
const [when, nth] = (process.env.DIE_AT_COMMIT ?? '').split(' ');
let commits = 0;

aroundCommits(
  async () => {
    commits += 1;
    dieIf('before');
  },
  async () => dieIf('after'),
);

function dieIf(now: string): void {
  if (now === when && commits === Number(nth)) process.kill(process.pid, 'SIGKILL');
}
