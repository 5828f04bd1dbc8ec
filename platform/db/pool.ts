import type { Driver, TransactionSettings } from 'kysely';
import { Turns } from '../process/turns.ts';
import { currentWork } from '../process/work-context.ts';
import type { Connection } from './connection.ts';

/** Short enough that a request which also waits for a lock can still be answered in time. */
const MAX_WAIT_MS = 4_000;
/** The limit for connecting, and then for the checks of a new connection. */
const MAX_OPENING_MS = 5_000;
/** A connection that nobody has used for this long is closed. */
const MAX_IDLE_MS = 30_000;

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

interface PoolOptions {
  /** The limit of connections. */
  size: number;
  shares: PoolShares | undefined;
  /** Creates a connection, which the pool opens. */
  create(): Connection;
  /** Throws if an open connection must not be used. */
  check(connection: Connection): Promise<void>;
}

/** No connection was free in time. Try again later. */
export class PoolBusy extends Error {
  override name = 'PoolBusy';
}

/**
 * The connections of a process, as Kysely asks for them. Whoever wants one waits for a turn first, so that no
 * account can take them all, and none takes those of the service itself. There are as many turns as
 * connections, so whoever has a turn gets a connection that rests, or opens one. A connection is lent until
 * it is given back or ends. If the work it is for is given up, it is ended, and its transaction with it.
 */
export class Pool implements Driver {
  readonly #options: PoolOptions;
  readonly #accountTurns: Turns | undefined;
  readonly #serviceTurns: Turns;
  readonly #opening = new Set<Connection>();
  /** What to do when a connection comes back, for each that is lent. */
  readonly #lent = new Map<Connection, () => void>();
  /** The one that was used last is lent first. */
  readonly #resting: { connection: Connection; timer: NodeJS.Timeout }[] = [];
  /** Resolved when nothing is lent any more; undefined while the pool is open. */
  #closing: PromiseWithResolvers<void> | undefined;

  constructor(options: PoolOptions) {
    const { size, shares } = options;
    this.#options = options;
    this.#accountTurns = shares && createTurns(shares.accounts, shares.eachAccount);
    this.#serviceTurns = shares
      ? createTurns(size - shares.accounts, size - shares.accounts - SPARE)
      : createTurns(size);
  }

  get usage(): PoolUsage {
    return { accounts: this.#accountTurns, service: this.#serviceTurns };
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<Connection> {
    const { account, part, signal, inTransaction } = currentWork();
    if (inTransaction) throw new Error('inside a transaction, every statement has to use the transaction');
    const endTurn =
      account === null || this.#accountTurns === undefined
        ? await this.#serviceTurns.take(part, signal)
        : await this.#accountTurns.take(account, signal);
    try {
      this.#mustBeOpen();
      const connection = this.#takeResting() ?? (await this.#open());
      if (signal?.aborted) {
        this.#rest(connection);
        throw signal.reason;
      }
      const abandon = () => connection.destroy();
      signal?.addEventListener('abort', abandon);
      this.#lent.set(connection, () => {
        signal?.removeEventListener('abort', abandon);
        endTurn();
      });
      return connection;
    } catch (error) {
      endTurn();
      throw error;
    }
  }

  async beginTransaction(connection: Connection, settings: TransactionSettings): Promise<void> {
    await this.#orDrop(connection, () => connection.begin(settings));
  }

  async commitTransaction(connection: Connection): Promise<void> {
    await connection.end('commit');
  }

  async rollbackTransaction(connection: Connection): Promise<void> {
    await this.#orDrop(connection, () => connection.end('rollback'));
  }

  async releaseConnection(connection: Connection): Promise<void> {
    const comeBack = this.#lent.get(connection);
    // It came back when it was lost.
    if (comeBack === undefined) return;
    this.#lent.delete(connection);
    this.#rest(connection);
    comeBack();
    if (this.#lent.size === 0) this.#closing?.resolve();
  }

  /**
   * Closes the pool. Connections that rest or are being opened end at once; those that are lent end when they
   * come back. They do come back: PostgreSQL's time limits and the limit of a response end whatever is stuck.
   */
  async destroy(): Promise<void> {
    this.#closing ??= Promise.withResolvers<void>();
    for (const connection of this.#opening) connection.destroy();
    for (const { connection, timer } of this.#resting.splice(0)) {
      clearTimeout(timer);
      connection.close();
    }
    if (this.#lent.size > 0) await this.#closing.promise;
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw new Error('Connection terminated: the pool has been closed');
  }

  async #open(): Promise<Connection> {
    const connection = this.#options.create();
    this.#opening.add(connection);
    let isTooLate = false;
    const patience = setTimeout(() => {
      isTooLate = true;
      connection.destroy();
    }, MAX_OPENING_MS);
    try {
      await connection.client.connect();
      connection.client.once('end', () => this.#lose(connection));
      patience.refresh();
      await this.#options.check(connection);
      this.#mustBeOpen();
      return connection;
    } catch (error) {
      connection.destroy();
      if (isTooLate) throw new Error('Connection terminated due to connection timeout', { cause: error });
      throw error;
    } finally {
      clearTimeout(patience);
      this.#opening.delete(connection);
    }
  }

  #takeResting(): Connection | undefined {
    for (let last = this.#resting.pop(); last !== undefined; last = this.#resting.pop()) {
      clearTimeout(last.timer);
      if (!last.connection.isLost) return last.connection;
    }
    return undefined;
  }

  /** Keeps a connection for whoever comes next, if it can still be used. */
  #rest(connection: Connection): void {
    if (connection.isLost) return;
    if (this.#closing !== undefined) {
      connection.close();
      return;
    }
    const timer = setTimeout(() => {
      this.#stopResting(connection);
      connection.close();
    }, MAX_IDLE_MS);
    this.#resting.push({ connection, timer });
  }

  #stopResting(connection: Connection): void {
    const index = this.#resting.findIndex((rests) => rests.connection === connection);
    const [found] = index === -1 ? [] : this.#resting.splice(index, 1);
    clearTimeout(found?.timer);
  }

  /** A connection has ended. Its holder notices with the next statement. */
  #lose(connection: Connection): void {
    this.#stopResting(connection);
    void this.releaseConnection(connection);
  }

  /**
   * Kysely never gives back a connection whose BEGIN or ROLLBACK fails (kysely-org/kysely#1990), so it ends
   * here.
   */
  async #orDrop(connection: Connection, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      connection.destroy();
      this.#lose(connection);
      throw error;
    }
  }
}

function createTurns(places: number, each = places): Turns {
  return new Turns({
    places,
    each: Math.max(each, 1),
    maxWait: {
      ms: MAX_WAIT_MS,
      error: () => new PoolBusy(`the database is busy: no connection was free within ${MAX_WAIT_MS} ms`),
    },
  });
}
