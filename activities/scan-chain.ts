import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { ChainUnreadable, type SolidBlock, type TronChain } from '../adapters/tron/tron-chain.ts';
import {
  beginScan,
  isAnyAwaited,
  markConfirming,
  readCursor,
  readFirstDepositTime,
  recordChainState,
  type ScanCursor,
} from '../commands/deposits/chain-scan.ts';
import { CursorMoved, type FoundPayment, findOwners, takeBlocks } from '../commands/deposits/take-blocks.ts';
import type { NodeState } from '../db/entities/deposits.ts';
import type { Orm } from '../db/orm.ts';
import type { TronNetwork } from '../domain/deposit.ts';
import { LONGEST_LAG_SECONDS, type ScanLag, scanLag } from '../domain/deposit.ts';
import { describeError } from '../process/describe-error.ts';
import { currentWork } from '../process/work-context.ts';

/** How long one run of the activity goes on. */
const ROUND_MS = 20_000;
/** Blocks in one transaction, while those after them are being fetched. */
const MOST_BLOCKS = 50;
/** Between two tries to read a chain that can't be read. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 10_000;
/** How often at most the chain's state is written down. */
const RECORD_EVERY_MS = 1_000;
/** The clock of whoever gave the first address out may be ahead of the chain's by as much. */
const CLOCK_SKEW_MS = 300_000;

export interface ScanChainActivities {
  /** Takes the solid blocks there are, and those that come, for {@link ROUND_MS}. Can be run again at any point, and twice at a time. */
  scanBlocks(network: TronNetwork): Promise<ScanReport>;
}

/** How the scan of a chain stands after a round. */
export type ScanReport =
  /** This installation does not read that chain any more. */
  | { state: 'not_configured' }
  /** No address was given out yet: there is nothing to be found. */
  | { state: 'idle' }
  | ScanProgress;

export interface ScanProgress {
  state: 'scanning';
  /** The last block taken; null where none could be read yet. ISO 8601. */
  block: { number: number; time: string | null } | null;
  lag: ScanLag;
  solidBlockNumber: number | null;
  node: string | null;
  nodes: Pick<NodeState, 'name' | 'state' | 'problem'>[];
  /** Why nothing can be read at the moment; null: it can. */
  unreadable: string | null;
}

export interface ScanDependencies {
  orm: Orm;
  /** Null: this installation reads no chain. */
  tron: { network: TronNetwork; scanIntervalMs: number; chain: TronChain } | null;
  logger: Logger;
  /** There are payments to be judged, or deposits that have changed. */
  changed(): void;
  /** Tells Temporal how far this round has come. */
  report(progress: { blockNumber: number }): void;
  /** Aborted when the worker stops: a round ends then, with what it has committed. */
  stopping: AbortSignal;
}

/** The effects that `scanChain` asks for. */
export function createScanChainActivities(dependencies: ScanDependencies): ScanChainActivities {
  const { tron } = dependencies;
  const looked: Looked = { atNumber: null };
  return {
    scanBlocks: async (network) =>
      tron?.network === network
        ? new Round({ ...dependencies, tron }, looked).run()
        : { state: 'not_configured' },
  };
}

/** The last block looked at that was not solid; it lasts from round to round. */
interface Looked {
  atNumber: number | null;
}

/** One run of the activity. */
class Round {
  readonly #orm: Orm;
  readonly #tron: NonNullable<ScanDependencies['tron']>;
  readonly #dependencies: ScanDependencies;
  readonly #looked: Looked;
  readonly #over = new AbortController();
  /** When nobody waits for the nodes' answers any more. */
  readonly #signal: AbortSignal;
  readonly #endAtMs = performance.now() + ROUND_MS;
  #cursor: ScanCursor | null = null;
  /** The blocks after those that are being committed, on their way. */
  #ahead: Promise<SolidBlock[]> | undefined;
  #isLooking = false;
  #recordedAtMs = Number.NEGATIVE_INFINITY;
  #unreadable: string | null = null;
  #pauseMs = 0;

  constructor(
    dependencies: ScanDependencies & { tron: NonNullable<ScanDependencies['tron']> },
    looked: Looked,
  ) {
    this.#orm = dependencies.orm;
    this.#tron = dependencies.tron;
    this.#dependencies = dependencies;
    this.#looked = looked;
    const attempt = currentWork().signal;
    this.#signal = AbortSignal.any([
      ...[this.#over.signal, dependencies.stopping],
      ...(attempt === null ? [] : [attempt]),
    ]);
  }

  async run(): Promise<ScanReport> {
    const { stopping } = this.#dependencies;
    this.#cursor = await readCursor(this.#orm.em.fork(), this.#tron.network);
    try {
      while (performance.now() < this.#endAtMs && !stopping.aborted) {
        const pauseMs = await this.#step();
        await this.#record();
        if (pauseMs > 0) await sleep(pauseMs, undefined, { signal: this.#signal });
      }
    } catch (error) {
      if (!stopping.aborted) throw error;
    } finally {
      this.#over.abort();
    }
    return this.#report();
  }

  /** Takes the next blocks. @returns how long to wait before the ones after them */
  async #step(): Promise<number> {
    try {
      this.#cursor ??= await this.#begin();
      const pauseMs = this.#cursor === null ? this.#tron.scanIntervalMs : await this.#take(this.#cursor);
      this.#unreadable = null;
      this.#pauseMs = 0;
      return pauseMs;
    } catch (error) {
      this.#ahead = undefined;
      if (error instanceof CursorMoved) {
        this.#cursor = null;
        return 0;
      }
      if (!(error instanceof ChainUnreadable)) throw error;
      this.#unreadable = error.message;
      // Somebody may have had it go on elsewhere because of that.
      this.#cursor = await readCursor(this.#orm.em.fork(), this.#tron.network);
      this.#pauseMs = Math.min(Math.max(FIRST_PAUSE_MS, this.#pauseMs * 2), LONGEST_PAUSE_MS);
      return this.#pauseMs;
    }
  }

  /** Where the scan stands. Null where there is no deposit yet. */
  async #begin(): Promise<ScanCursor | null> {
    const { network, chain } = this.#tron;
    const em = this.#orm.em.fork();
    const cursor = await readCursor(em, network);
    if (cursor !== null) return cursor;
    const first = await readFirstDepositTime(em, network);
    if (first === null) return null;
    const before = new Date(first.getTime() - CLOCK_SKEW_MS);
    await beginScan(this.#orm, network, await chain.findLastBlockBefore(before, this.#signal));
    return readCursor(em, network);
  }

  async #take(cursor: ScanCursor): Promise<number> {
    const blocks = await (this.#ahead ?? this.#read(cursor));
    this.#ahead = undefined;
    const last = blocks.at(-1);
    if (last === undefined) {
      this.#lookAhead(cursor);
      return this.#tron.scanIntervalMs;
    }
    const hasMore = last.number < (this.#tron.chain.state().solidBlockNumber ?? 0);
    if (hasMore && performance.now() < this.#endAtMs) {
      this.#ahead = this.#read(last);
      // It is heard when its turn comes, and may fail before that.
      this.#ahead.catch(() => {});
    }
    await this.#commit(cursor, blocks, last);
    this.#cursor = last;
    this.#dependencies.report({ blockNumber: last.number });
    if (hasMore) return 0;
    this.#lookAhead(last);
    return this.#tron.scanIntervalMs;
  }

  #read(after: { number: number; hash: string | null }): Promise<SolidBlock[]> {
    return this.#tron.chain.readBlocks(after, MOST_BLOCKS, this.#signal);
  }

  async #commit(after: ScanCursor, blocks: readonly SolidBlock[], last: SolidBlock): Promise<void> {
    const { network } = this.#tron;
    const payments = await this.#findPayments(blocks);
    const taken = await takeBlocks(this.#orm, { network, after, last, payments });
    if (taken.found + taken.expired + taken.awaitingAgain > 0) this.#dependencies.changed();
    for (const { txHash, logIndex, deniedBy, owner } of payments) {
      if (deniedBy === null) continue;
      this.#dependencies.logger.error(
        { ...{ txHash, logIndex, deniedBy }, depositId: owner.depositId },
        'TRON nodes disagree on a payment; an operator must review it',
      );
    }
  }

  /** The transfers to addresses of ours, and which other nodes deny them. */
  async #findPayments(blocks: readonly SolidBlock[]): Promise<FoundPayment[]> {
    const { network, chain } = this.#tron;
    const recipients = new Set<string>();
    for (const { transfers } of blocks) for (const { toHash } of transfers) recipients.add(toHash);
    const owners = await findOwners(this.#orm.em.fork(), network, recipients);
    if (owners.size === 0) return [];
    const found = blocks.map(async (block) => {
      const ours = block.transfers.filter(({ toHash }) => owners.has(toHash));
      if (ours.length === 0) return [];
      const denied = await chain.findDenied(block, ours, this.#signal);
      return ours.flatMap((transfer) => {
        const owner = owners.get(transfer.toHash);
        if (owner === undefined) return [];
        return { ...transfer, blockTime: block.time, deniedBy: denied.get(transfer) ?? null, owner };
      });
    });
    return (await Promise.all(found)).flat();
  }

  /** Looks at blocks that are not solid yet, beside the scan: a hint is not worth a wait. */
  #lookAhead({ number }: ScanCursor): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#mark(number)
      .catch((error: unknown) => {
        if (this.#signal.aborted) return;
        const described = describeError(error);
        this.#dependencies.logger.warn(
          { error: described },
          'could not look for payments in the latest blocks',
        );
      })
      .finally(() => {
        this.#isLooking = false;
      });
  }

  async #mark(solidNumber: number): Promise<void> {
    const { network, chain } = this.#tron;
    const em = this.#orm.em.fork();
    if (!(await isAnyAwaited(em, network))) return;
    const seen = await chain.readUnsolid(this.#looked.atNumber ?? solidNumber, this.#signal);
    if (seen === null) return;
    this.#looked.atNumber = seen.number;
    const blocks = new Map(seen.transfers.map(({ toHash, blockNumber }) => [toHash, blockNumber]));
    const owners = await findOwners(em, network, blocks.keys());
    if (owners.size === 0) return;
    for (const hash of blocks.keys()) if (!owners.has(hash)) blocks.delete(hash);
    if ((await markConfirming(this.#orm, network, blocks)) > 0) this.#dependencies.changed();
  }

  async #record(): Promise<void> {
    if (performance.now() < this.#recordedAtMs + RECORD_EVERY_MS) return;
    this.#recordedAtMs = performance.now();
    await recordChainState(this.#orm, this.#tron.network, this.#tron.chain.state());
  }

  #report(): ScanReport {
    const cursor = this.#cursor;
    if (cursor === null && this.#unreadable === null) return { state: 'idle' };
    const { solidBlockNumber, node, nodes } = this.#tron.chain.state();
    const lag =
      cursor === null
        ? { blocks: null, seconds: null }
        : scanLag({ blockNumber: cursor.number, blockTime: cursor.time, solidBlockNumber });
    if (this.#unreadable !== null || (lag.seconds ?? 0) > LONGEST_LAG_SECONDS) {
      const { network } = this.#tron;
      const where = { network, block: cursor?.number ?? null, solidBlockNumber, lag, node };
      this.#dependencies.logger.warn(
        { ...where, unreadable: this.#unreadable },
        'the scan is behind the chain',
      );
    }
    return {
      state: 'scanning',
      block: cursor && { number: cursor.number, time: cursor.time?.toISOString() ?? null },
      ...{ lag, solidBlockNumber, node },
      nodes: nodes.map(({ name, state, problem }) => ({ name, state, problem })),
      unreadable: this.#unreadable,
    };
  }
}
