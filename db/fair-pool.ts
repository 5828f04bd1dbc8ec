import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { currentWork } from '../process/work-context.ts';
import type { ReleasingClient } from './pg-client.ts';
import { Turns } from './turns.ts';

/** With a wait for a lock behind it, still within the time a request has for its answer. */
const LONGEST_WAIT_MS = 4_000;

/** After which a pool has ended even if it has forgotten a connection, which then goes with the process. */
const LONGEST_END_MS = 2_000;

/** Of the service's own connections, what none of its parts can take alone. */
const SPARE = 2;

/** Who gets how many of a pool's connections. Without: everybody waits in one line for all of them. */
export interface PoolShares {
  /** All accounts together; what is left is the service's own. */
  accounts: number;
  /** One account. */
  eachAccount: number;
}

/** How a pool's places are used, by whose they are. */
export type PoolUsage = Readonly<Record<'accounts' | 'service', PlacesUsage | undefined>>;
export type PlacesUsage = Pick<Turns, 'places' | 'held' | 'waiting' | 'givenUp'>;

/**
 * Has all that asks this pool for a connection wait for its turn first: the pool's own queue stays empty, no account
 * can take all connections, and none takes the service's own. A connection is lent until it goes back, ends, or the work
 * it is for is given up; then it is ended, and with it the transaction.
 */
export function lendInTurns(pool: Pool, size: number, shares: PoolShares | undefined): PoolUsage {
  const ofAccounts = shares && turnsOf(shares.accounts, shares.eachAccount);
  const ofService = shares ? turnsOf(size - shares.accounts, size - shares.accounts - SPARE) : turnsOf(size);
  const givenBack = new WeakMap<PoolClient, () => void>();
  const lend: () => Promise<PoolClient> = pool.connect.bind(pool);
  const end: () => Promise<void> = pool.end.bind(pool);

  pool.on('release', (_, client) => givenBack.get(client)?.());

  async function connect(): Promise<PoolClient> {
    const { account, part, signal, inTransaction } = currentWork();
    if (inTransaction) throw new Error('inside a transaction every statement has to go through it');
    const leave =
      account === null || ofAccounts === undefined
        ? await ofService.take(part, signal)
        : await ofAccounts.take(account, signal);
    try {
      const client = await lend();
      const abandon = () => (client as unknown as ReleasingClient).destroy();
      givenBack.set(client, () => {
        signal?.removeEventListener('abort', abandon);
        leave();
      });
      signal?.addEventListener('abort', abandon);
      if (signal?.aborted) {
        client.release();
        signal.throwIfAborted();
      }
      return client;
    } catch (error) {
      leave();
      throw error;
    }
  }
  // MikroORM makes the pool itself, and asks it for connections, and ends it, in this one way.
  pool.connect = connect as Pool['connect'];
  // A pool that is told to end while it opens connections waits for them without end.
  pool.end = (() => Promise.race([end(), sleep(LONGEST_END_MS, undefined, { ref: false })])) as Pool['end'];
  return { accounts: ofAccounts, service: ofService };
}

function turnsOf(places: number, each = places): Turns {
  return new Turns({ places, each: Math.max(each, 1), longestWaitMs: LONGEST_WAIT_MS });
}
