export interface FaultRule<Fault extends string> {
  fault: Fault;
  /** A part of `POST /account_transfers`; a TRON node's have no method. By default every request. */
  request?: string;
  /** How many requests it affects before it ends; by default all. */
  times?: number;
  /** It affects every n-th request: 3 spares two of three. */
  every?: number;
}

/** Which requests a fake of the outside world answers with a fault. */
export class FaultRules<Fault extends string> {
  readonly #rules = new Set<{ rule: FaultRule<Fault>; seen: number; hit: number }>();

  /** @returns a function that removes it */
  add(rule: FaultRule<Fault>): () => void {
    const entry = { rule, seen: 0, hit: 0 };
    this.#rules.add(entry);
    return () => this.#rules.delete(entry);
  }

  clear(): void {
    this.#rules.clear();
  }

  /** The fault of this request; if there are several, the one that was added first. */
  next(request: string): Fault | undefined {
    for (const entry of this.#rules) {
      const { fault, request: part = '', times = Number.POSITIVE_INFINITY, every = 1 } = entry.rule;
      if (!request.includes(part) || entry.hit >= times) continue;
      entry.seen++;
      if (entry.seen % every !== 0) continue;
      entry.hit++;
      return fault;
    }
    return undefined;
  }
}
