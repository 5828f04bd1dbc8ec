import type { Logger } from 'pino';
import type { NodeState } from '../../domain/deposit.ts';

/**
 * Why a call to a node failed. It never quotes the node's response, which may contain an API key that was
 * sent to it.
 */
export class NodeProblem extends Error {
  override name = 'NodeProblem';
  readonly state: 'failing' | 'behind' | 'contradicting';
  /** A short code; docs/operating-deposits.md lists them. */
  readonly code: string;
  /** How long the node asked us to wait. */
  readonly retryAfterMs: number;

  constructor(state: NodeProblem['state'], code: string, retryAfterMs = 0) {
    super(`${state}: ${code}`);
    this.state = state;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

export interface Recovery {
  /** The clock of all these times. */
  nowMs(): number;
  /**
   * The backoff after the first problem. Each further problem doubles it, and each good response in between
   * halves it.
   */
  firstBackoffMs: number;
  maxBackoffMs: number;
  /** How long a node has to go without a problem before it is preferred again. */
  recoveryMs: number;
}

/** Whether a node can be used, and whether to prefer it over others. */
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

  /** @param asked what the node is used for, for the log */
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

  /** Whether its backoff has passed. */
  get isDue(): boolean {
    return this.#recovery.nowMs() >= this.#retryAtMs;
  }

  failed(problem: NodeProblem): void {
    const { firstBackoffMs, maxBackoffMs } = this.#recovery;
    this.#failures++;
    const backoffMs = Math.min(maxBackoffMs, firstBackoffMs * 2 ** (this.#failures - 1));
    this.#lastProblemAtMs = this.#recovery.nowMs();
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

  /** Call it after a good response. */
  passed(): void {
    this.#failures = Math.max(0, this.#failures - 1);
    if (this.#problem === null) return;
    if (this.#recovery.nowMs() - this.#lastProblemAtMs < this.#recovery.recoveryMs) return;
    this.#problem = null;
    this.#failures = 0;
    this.#since = new Date();
    this.#logger.info({ node: this.#name }, `using a TRON node again for ${this.#asked}`);
  }

  /** Call it when the node becomes the one that is read from, or stops being it. */
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
