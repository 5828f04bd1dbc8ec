/** How many places there are, and how many of them one line may hold at a time. */
interface TurnLimits {
  places: number;
  each: number | ((line: string) => number);
  /**
   * How long a line rests after each turn, as a multiple of how long it held the place; none if omitted. Its
   * place is free for the others meanwhile.
   */
  rest?(line: string): number;
  /**
   * How long a request waits before it gives up with this error. If omitted, it waits until its signal is
   * aborted.
   */
  maxWait?: { ms: number; error(): Error };
}

interface Waiting {
  /** Called when it gets a place. */
  admit(): void;
}

interface Line {
  /** The places it holds, and those it rests from. */
  held: number;
  waiting: Set<Waiting>;
}

/**
 * Places shared by several lines. Within a line, it is first come, first served. The lines take turns, so a
 * long line does not delay the others.
 */
export class Turns {
  readonly #limits: TurnLimits;
  readonly #now: () => number;
  #free: number;
  #givenUp = 0;
  /** The lines that hold or want places, in the order of their next turns. */
  readonly #lines = new Map<string, Line>();

  /** @param now milliseconds of a monotonic clock */
  constructor(limits: TurnLimits, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
    this.#free = limits.places;
  }

  /** How many places are held. */
  get held(): number {
    return this.#limits.places - this.#free;
  }

  get places(): number {
    return this.#limits.places;
  }

  /** How many wait for a place. */
  get waiting(): number {
    return [...this.#lines.values()].reduce((sum, line) => sum + line.waiting.size, 0);
  }

  /** How many waits were given up. */
  get givenUp(): number {
    return this.#givenUp;
  }

  /**
   * Waits for a turn.
   * @returns a function that releases the place, from which the line rests that much longer; only the first
   * call has an effect
   * @throws the error of `maxWait` after that time, or the signal's reason when it is aborted
   */
  async take(name: string, signal: AbortSignal | null): Promise<(moreRestMs?: number) => void> {
    signal?.throwIfAborted();
    const line = this.#lines.get(name) ?? { held: 0, waiting: new Set() };
    this.#lines.set(name, line);
    if (this.#free > 0 && line.held < this.#each(name) && line.waiting.size === 0) this.#hold(line);
    else await this.#wait(line, signal).finally(() => this.#forgetIfIdle(name, line));

    const heldFromMs = this.#now();
    let isHeld = true;
    return (moreRestMs = 0) => {
      if (!isHeld) return;
      isHeld = false;
      this.#free += 1;
      const rested = () => {
        line.held -= 1;
        this.#forgetIfIdle(name, line);
        this.#admitNext();
      };
      const restMs = (this.#limits.rest?.(name) ?? 0) * (this.#now() - heldFromMs) + moreRestMs;
      if (restMs === 0) return rested();
      setTimeout(rested, restMs).unref();
      this.#admitNext();
    };
  }

  #each(name: string): number {
    const { each } = this.#limits;
    return typeof each === 'number' ? each : each(name);
  }

  #hold(line: Line): void {
    line.held += 1;
    this.#free -= 1;
  }

  #wait(line: Line, signal: AbortSignal | null): Promise<void> {
    const { maxWait } = this.#limits;
    return new Promise((resolve, reject) => {
      const leave = () => {
        line.waiting.delete(waiting);
        clearTimeout(patience);
        signal?.removeEventListener('abort', abort);
      };
      const waiting: Waiting = {
        admit: () => {
          leave();
          this.#hold(line);
          resolve();
        },
      };
      const abort = () => {
        leave();
        reject(signal?.reason);
      };
      const giveUp = () => {
        leave();
        this.#givenUp += 1;
        reject(maxWait?.error());
      };
      const patience = maxWait && setTimeout(giveUp, maxWait.ms);
      signal?.addEventListener('abort', abort);
      line.waiting.add(waiting);
    });
  }

  /** Gives free places to the lines in order. A line that got one moves to the end. */
  #admitNext(): void {
    for (const [name, line] of this.#lines) {
      if (this.#free === 0) return;
      const [first] = line.waiting;
      if (first === undefined || line.held >= this.#each(name)) continue;
      this.#lines.delete(name);
      this.#lines.set(name, line);
      first.admit();
    }
  }

  #forgetIfIdle(name: string, line: Line): void {
    if (line.held === 0 && line.waiting.size === 0 && this.#lines.get(name) === line)
      this.#lines.delete(name);
  }
}
