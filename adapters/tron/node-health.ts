import type { Logger } from 'pino';
import type { NodeState } from '../../db/entities/deposits.ts';

/** Why nothing was to be had from a node. It quotes nothing the node said, which may hold a key that was sent to it. */
export class NodeProblem extends Error {
  override name = 'NodeProblem';
  readonly state: 'failing' | 'behind' | 'contradicting';
  /** A short code; docs/operating.md lists them. */
  readonly code: string;
  /** How long the node asked to be left alone. */
  readonly retryAfterMs: number;

  constructor(state: NodeProblem['state'], code: string, retryAfterMs = 0) {
    super(`${state}: ${code}`);
    this.state = state;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

export interface Recovery {
  /** After the first problem; it doubles with each further one and halves with each answer between them. */
  firstBackoffMs: number;
  mostBackoffMs: number;
  /** How long a node has to be without a problem before it is preferred again. */
  recoveryMs: number;
}

/** Whether a node can be asked, and whether it should be if another can be, too. */
export class NodeHealth {
  #problem: NodeProblem | null = null;
  #since = new Date();
  #retryAtMs = 0;
  #lastProblemAtMs = 0;
  #failures = 0;
  readonly #name: string;
  readonly #asked: string;
  readonly #recovery: Recovery;
  readonly #logger: Logger;

  /** @param asked what it is asked for, as the log says it */
  constructor(name: string, asked: string, recovery: Recovery, logger: Logger) {
    this.#name = name;
    this.#asked = asked;
    this.#recovery = recovery;
    this.#logger = logger;
  }

  get problem(): NodeProblem | null {
    return this.#problem;
  }

  get isSound(): boolean {
    return this.#problem === null;
  }

  /** Whether its last problem was long enough ago for another question. */
  get isDue(): boolean {
    return performance.now() >= this.#retryAtMs;
  }

  failed(problem: NodeProblem): void {
    const { firstBackoffMs, mostBackoffMs } = this.#recovery;
    this.#failures++;
    const backoffMs = Math.min(mostBackoffMs, firstBackoffMs * 2 ** (this.#failures - 1));
    this.#lastProblemAtMs = performance.now();
    this.#retryAtMs = this.#lastProblemAtMs + Math.max(backoffMs, problem.retryAfterMs);
    const isNews = this.#problem?.state !== problem.state;
    this.#problem = problem;
    if (!isNews) return;
    this.#since = new Date();
    this.#logger.warn(
      { node: this.#name, state: problem.state, problem: problem.code },
      `skipping a TRON node for ${this.#asked}; retrying it from time to time`,
    );
  }

  /** It answered as it should. */
  passed(): void {
    this.#failures = Math.max(0, this.#failures - 1);
    if (this.#problem === null) return;
    if (performance.now() - this.#lastProblemAtMs < this.#recovery.recoveryMs) return;
    this.#problem = null;
    this.#failures = 0;
    this.#since = new Date();
    this.#logger.info({ node: this.#name }, `using a TRON node again for ${this.#asked}`);
  }

  /** It is now read from, or no longer. */
  placed(): void {
    if (this.#problem === null) this.#since = new Date();
  }

  state(isInUse: boolean): NodeState {
    return {
      name: this.#name,
      state: this.#problem?.state ?? (isInUse ? 'in_use' : 'standby'),
      problem: this.#problem?.code ?? null,
      since: this.#since.toISOString(),
    };
  }
}
