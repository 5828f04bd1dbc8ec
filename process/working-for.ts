import { AsyncLocalStorage } from 'node:async_hooks';
import type { Tenant } from '../domain/tenant.ts';

/** On whose behalf a piece of work asks for connections. */
interface Work {
  /** `<partnerId>/<mode>`; null: the service's own. */
  account: string | null;
  /** Which part of the service's own work; what is not named is one part. */
  part: string;
  /** Aborted when nobody waits for the work any more: it takes no further connection, and loses the one it has. */
  signal: AbortSignal | null;
  inTransaction: boolean;
}

const OWN: Work = { account: null, part: '', signal: null, inTransaction: false };
const current = new AsyncLocalStorage<Work>();

/** What is under way here; outside of any, the service's own work. */
export function currentWork(): Readonly<Work> {
  return current.getStore() ?? OWN;
}

/** Runs `work`, and all it starts, in this account's turns at the database (docs/decisions/time-limits.md). */
export function asAccount<T>({ partnerId, mode }: Tenant, work: () => T): T {
  return current.run({ ...currentWork(), account: `${partnerId}/${mode}` }, work);
}

/** Runs what serves several accounts, or none, in the service's own turns; its parts take turns, too. */
export function asService<T>(part: string, work: () => T): T {
  return current.run({ ...currentWork(), account: null, part }, work);
}

/** Runs `work` until `signal` says that it was given up. */
export function untilAborted<T>(signal: AbortSignal, work: () => T): T {
  return current.run({ ...currentWork(), signal }, work);
}

/** Runs what has a connection already: to ask for a second one would be to wait for others while they wait for it. */
export function inTransaction<T>(work: () => T): T {
  return current.run({ ...currentWork(), inTransaction: true }, work);
}
