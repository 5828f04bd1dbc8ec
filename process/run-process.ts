import { describeError } from './describe-error.ts';

/** A process can't start, and its message says all that whoever started it has to know. */
export class StartRefused extends Error {}

export interface RunningProcess {
  /** Settles when the work ends of itself. */
  ended: Promise<void>;
  stop(): Promise<void>;
}

/** The life of a production process: starts, ends in order on SIGINT or SIGTERM, and exits with 1 where it can't go on. */
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

/** Runs `work` and ends the process: with 0, or with 1 and one message that says why. */
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
