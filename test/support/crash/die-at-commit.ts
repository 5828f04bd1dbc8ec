import { aroundCommits } from './around-commits.ts';

/**
 * For `node --import`: right before or right after its nth COMMIT, kills the process, as by kill -9, or freezes it.
 * DIE_AT_COMMIT: `before 1`, `after 2`, `freeze before 1` …
 */
const [when, nth, isFreeze] = (process.env.DIE_AT_COMMIT ?? '')
  .replace(/^(freeze) (.*)$/, '$2 $1')
  .split(' ');
let commits = 0;

aroundCommits(
  async () => {
    commits += 1;
    dieIf('before');
  },
  async () => dieIf('after'),
);

function dieIf(now: string): void {
  if (now === when && commits === Number(nth)) process.kill(process.pid, isFreeze ? 'SIGSTOP' : 'SIGKILL');
}
