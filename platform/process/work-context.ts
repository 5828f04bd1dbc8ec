import { AsyncLocalStorage } from 'node:async_hooks';
import type { Tenant } from '../../domain/mode.ts';

/** What a piece of work belongs to. Its log lines name these. */
interface Whole {
  /** The request that caused it. */
  requestId: string | null;
  /** The workflow that it is a step of. */
  workflowId: string | null;
  /** The span that it belongs to, as W3C's `traceparent`, if traces are exported. */
  traceparent: string | null;
}

/** On whose behalf a piece of work uses database connections, and until when. */
interface Work extends Whole {
  /** `<partnerId>/<mode>`; null for the service's own work. */
  account: string | null;
  /** The part of the service's own work. Parts take turns as accounts do; unnamed work is one part. */
  part: string;
  /** Aborted once nobody waits for the work: it gets no further connection and loses the one it has. */
  signal: AbortSignal | null;
  inTransaction: boolean;
}

const UNNAMED: Work = {
  requestId: null,
  workflowId: null,
  traceparent: null,
  account: null,
  part: '',
  signal: null,
  inTransaction: false,
};
const current = new AsyncLocalStorage<Work>();

/** The work that the caller is part of; the service's own unless {@link asAccount} says otherwise. */
export function currentWork(): Readonly<Work> {
  return current.getStore() ?? UNNAMED;
}

/**
 * Runs `work`, and everything it starts, in this account's turns at the database
 * (docs/decisions/time-limits.md).
 */
export function asAccount<T>({ partnerId, mode }: Tenant, work: () => T): T {
  return current.run({ ...currentWork(), account: `${partnerId}/${mode}` }, work);
}

/** Runs work for several accounts, or for none, in the turns of a part of the service's own work. */
export function asService<T>(part: string, work: () => T): T {
  return current.run({ ...currentWork(), account: null, part }, work);
}

/** Runs `work`, and everything it starts, as a part of a request, a workflow, a span. */
export function asPartOf<T>(whole: Partial<Whole>, work: () => T): T {
  return current.run({ ...currentWork(), ...whole }, work);
}

/** Runs `work`, which gets no connection once `signal` is aborted. */
export function untilAborted<T>(signal: AbortSignal, work: () => T): T {
  return current.run({ ...currentWork(), signal }, work);
}

/**
 * Marks `work` as holding a connection. Asking for a second one could deadlock: others may wait for the
 * first.
 */
export function inTransaction<T>(work: () => T): T {
  return current.run({ ...currentWork(), inTransaction: true }, work);
}
