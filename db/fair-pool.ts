import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { currentWork } from '../process/work-context.ts';
import type { ReleasingClient } from './pg-client.ts';
import { Turns } from './turns.ts';

/** Short enough that a request which also waits for a lock can still be answered in time. */
const MAX_WAIT_MS = 4_000;

/** After this time, a pool counts as ended even if a connection was leaked, which then ends with the process. */
const MAX_END_MS = 2_000;

/** How many of the service's own connections no single part of it can take. */
const SPARE = 2;

/** How a pool's connections are shared out. Without this, everybody waits in one line for all of them. */
export interface PoolShares {
  /** The limit for all accounts together; the rest is for the service itself. */
  accounts: number;
  /** The limit for one account. */
  eachAccount: number;
}

/** The usage of a pool's connections, by share. */
export type PoolUsage = Readonly<Record<'accounts' | 'service', PlacesUsage | undefined>>;
export type PlacesUsage = Pick<Turns, 'places' | 'held' | 'waiting' | 'givenUp'>;

/**
 * Makes everything that asks this pool for a connection wait for its turn first: the pool's own queue stays empty, no account
 * can take all connections, and none takes those of the service itself. A connection is lent until it is released or ends. If
 * the work it is for is given up, the connection is ended, and the transaction with it.
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
    if (inTransaction) throw new Error('inside a transaction, every statement has to use the transaction');
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
  // MikroORM creates the pool itself, and only uses `connect` and `end`.
  pool.connect = connect as Pool['connect'];
  // A pool that is ended while it opens connections waits for them indefinitely.
  pool.end = (() => Promise.race([end(), sleep(MAX_END_MS, undefined, { ref: false })])) as Pool['end'];
  return { accounts: ofAccounts, service: ofService };
}

function turnsOf(places: number, each = places): Turns {
  return new Turns({ places, each: Math.max(each, 1), longestWaitMs: MAX_WAIT_MS });
}
