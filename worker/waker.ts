import { setTimeout as sleep } from 'node:timers/promises';

/** A loop that takes its next turn when somebody wakes it, or after `idleMs`. */
export class Waker {
  readonly #idleMs: number;
  #isWanted = false;
  #isStopped = false;
  #wakeUp: (() => void) | undefined;

  constructor(idleMs: number) {
    this.#idleMs = idleMs;
  }

  get stopped(): boolean {
    return this.#isStopped;
  }

  wake(): void {
    this.#isWanted = true;
    this.#wakeUp?.();
  }

  stop(): void {
    this.#isStopped = true;
    this.#wakeUp?.();
  }

  /** Takes turns until it is stopped. It pauses after a turn that failed. */
  async run(turn: () => Promise<void>, onFailure: (error: unknown) => void): Promise<void> {
    while (!this.#isStopped) {
      try {
        await turn();
      } catch (error) {
        onFailure(error);
        await this.pause();
      }
      await this.#due();
    }
  }

  /** Waits until the next turn is due. */
  async #due(): Promise<void> {
    if (!this.#isWanted && !this.#isStopped) {
      await new Promise<void>((resolve) => {
        const idle = setTimeout(resolve, this.#idleMs);
        this.#wakeUp = () => {
          clearTimeout(idle);
          resolve();
        };
      });
      this.#wakeUp = undefined;
    }
    this.#isWanted = false;
    // Several often wake it at the same moment: one turn serves them all.
    await new Promise(setImmediate);
  }

  /** Waits after a failure. */
  async pause(): Promise<void> {
    if (!this.#isStopped) await sleep(this.#idleMs);
  }
}
