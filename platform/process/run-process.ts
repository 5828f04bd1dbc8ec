import { describeError } from './describe-error.ts';

/** A process can't start. The message alone tells the person who started it what to do. */
export class StartRefused extends Error {}

interface RunningProcess {
  /** Settles if the work ends on its own. */
  ended: Promise<void>;
  stop(): Promise<void>;
}

/**
 * Runs a production process until SIGINT, SIGTERM or a failure, stops it gracefully, and exits with 0, or
 * with 1 after a failure.
 */
export async function runProcess(name: string, start: () => Promise<RunningProcess>): Promise<void> {
  await runOnce(name, async () => {
    const running = await start();
    const signalled = new Promise<void>((resolve) => {
      process.once('SIGINT', () => resolve());
      process.once('SIGTERM', () => resolve());
    });
    await Promise.race([signalled, running.ended]);
    await running.stop();
  });
}

/** Runs `work` and exits with 0, or with 1 and one message that says why. */
export async function runOnce(name: string, work: () => Promise<void>): Promise<never> {
  try {
    await work();
    process.exit(0);
  } catch (error) {
    const { summary, stack } = describeError(error);
    console.error(
      error instanceof StartRefused ? error.message : `The ${name} failed: ${summary}\n${stack ?? ''}`,
    );
    process.exit(1);
  }
}
