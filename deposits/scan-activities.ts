import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ChainName, NodeState } from '../domain/deposit.ts';
import { MAX_LAG_SECONDS, type ScanLag, scanLag } from '../domain/scan-lag.ts';
import type { Orm } from '../platform/db/orm.ts';
import { currentWork, untilAborted } from '../platform/process/work-context.ts';
import {
  beginScan,
  readCursor,
  readFirstDepositTime,
  recordChainState,
  type ScanCursor,
} from './chain-scan.ts';
import { UnconfirmedPayments, UnsolidBlocks } from './look-ahead.ts';
import {
  CursorMoved,
  type FoundPayment,
  findOwners,
  takeBlocks,
  type UnconfirmedFound,
} from './take-blocks.ts';
import { ChainUnreadable, type SolidBlock, type TronChain } from './tron/tron-chain.ts';

/** How long one run of the activity takes. */
const ROUND_MS = 20_000;
/** Blocks in one transaction, while the next ones are being fetched. */
const MAX_BLOCKS = 50;
/** The pause before the first retry when the chain can't be read. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 10_000;
/** The chain's state is recorded at most this often. */
const RECORD_EVERY_MS = 1_000;
/** How far the clock of the process that gave out the first address may be ahead of the chain's. */
const CLOCK_SKEW_MS = 300_000;

export interface ScanChainActivities {
  /**
   * Takes solid blocks, and waits for new ones, for {@link ROUND_MS}. It can be repeated at any point, even
   * concurrently.
   */
  scanBlocks(network: ChainName): Promise<ScanReport>;
}

/** The state of a chain's scan after a round. */
export type ScanReport =
  /** This installation doesn't read that chain. */
  | { state: 'not_configured' }
  /** No deposit address exists yet, so nothing can have been paid. */
  | { state: 'idle' }
  | ScanProgress;

export interface ScanProgress {
  state: 'scanning';
  /** The last block taken, with its time in ISO 8601; null if no block could be read yet. */
  block: { number: number; time: string | null } | null;
  lag: ScanLag;
  solidBlockNumber: number | null;
  node: string | null;
  nodes: Pick<NodeState, 'name' | 'state' | 'problem'>[];
  /** Why the chain can't be read at the moment; null if it can. */
  unreadable: string | null;
}

export interface ScanDependencies {
  orm: Orm;
  /** Null if this installation reads no chain. */
  tron: { network: ChainName; scanIntervalMs: number; chain: TronChain } | null;
  logger: Logger;
  /** Called when there are payments to judge, or deposits have changed. */
  changed(): void;
  /** Reports this round's progress to Temporal. */
  report(progress: { blockNumber: number }): void;
  /** Aborted when the worker stops. The round then ends with what it has committed. */
  stopping: AbortSignal;
}

/** The activities of `scanChain`. */
export function createScanChainActivities(dependencies: ScanDependencies): ScanChainActivities {
  const { tron } = dependencies;
  if (tron === null) return { scanBlocks: async () => ({ state: 'not_configured' }) };
  const unsolid = new UnsolidBlocks({ ...dependencies, tron });
  const unconfirmed = new UnconfirmedPayments({ ...dependencies, tron });
  return {
    scanBlocks: async (network) =>
      tron.network === network
        ? new Round({ ...dependencies, tron }, unsolid, unconfirmed).run()
        : { state: 'not_configured' },
  };
}

/** A round without pauses: takes every solid block there is, once. */
export function scanOnce(
  dependencies: ScanDependencies & { tron: NonNullable<ScanDependencies['tron']> },
): Promise<ScanReport> {
  return new Round(
    dependencies,
    new UnsolidBlocks(dependencies),
    new UnconfirmedPayments(dependencies),
  ).runOnce();
}

/** One run of the activity. */
class Round {
  readonly #tron: NonNullable<ScanDependencies['tron']>;
  readonly #dependencies: ScanDependencies;
  readonly #unsolid: UnsolidBlocks;
  readonly #unconfirmed: UnconfirmedPayments;
  readonly #over = new AbortController();
  /** Aborted once nobody is waiting for the nodes. */
  readonly #signal: AbortSignal;
  readonly #endAtMs = performance.now() + ROUND_MS;
  #cursor: ScanCursor | null = null;
  /** The next blocks, fetched while the previous ones are committed. */
  #ahead: Promise<SolidBlock[]> | undefined;
  #looking: Promise<void> = Promise.resolve();
  #recordedAtMs = Number.NEGATIVE_INFINITY;
  #unreadable: string | null = null;
  #pauseMs = 0;

  constructor(
    dependencies: ScanDependencies & { tron: NonNullable<ScanDependencies['tron']> },
    unsolid: UnsolidBlocks,
    unconfirmed: UnconfirmedPayments,
  ) {
    this.#tron = dependencies.tron;
    this.#dependencies = dependencies;
    this.#unsolid = unsolid;
    this.#unconfirmed = unconfirmed;
    const signals = [this.#over.signal, dependencies.stopping];
    const attempt = currentWork().signal;
    if (attempt !== null) signals.push(attempt);
    this.#signal = AbortSignal.any(signals);
  }

  async run(): Promise<ScanReport> {
    const { stopping } = this.#dependencies;
    this.#cursor = await readCursor(this.#dependencies.orm.em.fork(), this.#tron.network);
    try {
      while (performance.now() < this.#endAtMs && !stopping.aborted) {
        const pauseMs = await this.#step();
        await this.#record();
        // Beyond the round, which is shorter than a node may take to say what is in a block.
        void untilAborted(stopping, () => this.#unconfirmed.ask(stopping));
        if (pauseMs > 0) await sleep(pauseMs, undefined, { signal: this.#signal });
      }
    } catch (error) {
      if (!stopping.aborted) throw error;
    } finally {
      this.#over.abort();
    }
    return this.#report();
  }

  /** Takes every block there is, and waits for what a round does in the background. */
  async runOnce(): Promise<ScanReport> {
    this.#cursor = await readCursor(this.#dependencies.orm.em.fork(), this.#tron.network);
    try {
      while ((await this.#step()) === 0);
      await Promise.all([this.#looking, this.#unconfirmed.ask(this.#signal)]);
      await this.#record();
    } finally {
      this.#over.abort();
    }
    return this.#report();
  }

  #look(solidNumber: number): void {
    this.#looking = this.#unsolid.look(solidNumber, this.#signal);
  }

  /** Takes the next blocks. @returns how long to wait before the following ones */
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
      // An operator may have requested a rescan in the meantime.
      this.#cursor = await readCursor(this.#dependencies.orm.em.fork(), this.#tron.network);
      if (this.#cursor !== null) this.#look(this.#cursor.number);
      this.#pauseMs = Math.min(Math.max(FIRST_PAUSE_MS, this.#pauseMs * 2), MAX_PAUSE_MS);
      return this.#pauseMs;
    }
  }

  /** Starts the scan if it has not started. @returns null if there is no deposit yet */
  async #begin(): Promise<ScanCursor | null> {
    const { network, chain } = this.#tron;
    const em = this.#dependencies.orm.em.fork();
    const cursor = await readCursor(em, network);
    if (cursor !== null) return cursor;
    const first = await readFirstDepositTime(em, network);
    if (first === null) return null;
    const before = new Date(first.getTime() - CLOCK_SKEW_MS);
    await beginScan(this.#dependencies.orm, network, await chain.findLastBlockBefore(before, this.#signal));
    return readCursor(em, network);
  }

  async #take(cursor: ScanCursor): Promise<number> {
    const blocks = await (this.#ahead ?? this.#read(cursor));
    this.#ahead = undefined;
    const last = blocks.at(-1);
    if (last === undefined) {
      this.#look(cursor.number);
      return this.#tron.scanIntervalMs;
    }
    const hasMore = last.number < (this.#tron.chain.state().solidBlockNumber ?? 0);
    if (hasMore && performance.now() < this.#endAtMs) {
      this.#ahead = this.#read(last);
      // It may reject before it is awaited.
      this.#ahead.catch(() => {});
    }
    await this.#commit(cursor, blocks, last);
    this.#cursor = last;
    this.#dependencies.report({ blockNumber: last.number });
    if (hasMore) return 0;
    this.#look(last.number);
    return this.#tron.scanIntervalMs;
  }

  #read(after: { number: number; hash: string | null }): Promise<SolidBlock[]> {
    return this.#tron.chain.readBlocks(after, MAX_BLOCKS, this.#signal);
  }

  async #commit(after: ScanCursor, blocks: readonly SolidBlock[], last: SolidBlock): Promise<void> {
    const { network } = this.#tron;
    const { payments, unconfirmed } = await this.#findPayments(blocks);
    const taken = await takeBlocks(this.#dependencies.orm, { network, after, last, payments, unconfirmed });
    const { found, confirming, awaitingAgain } = taken;
    if (found + confirming + awaitingAgain > 0) this.#dependencies.changed();
    for (const { txHash, logIndex, owner, says } of unconfirmed) {
      this.#dependencies.logger.warn(
        { txHash, logIndex, depositId: owner.depositId, nodes: says },
        'too few TRON nodes show a payment; asking all of them',
      );
    }
  }

  /**
   * The transfers to our addresses: those that enough nodes show, and those that still have to be confirmed.
   */
  async #findPayments(
    blocks: readonly SolidBlock[],
  ): Promise<{ payments: FoundPayment[]; unconfirmed: UnconfirmedFound[] }> {
    const { network, chain } = this.#tron;
    const recipients = new Set<string>();
    for (const { transfers } of blocks) for (const { toHash } of transfers) recipients.add(toHash);
    const owners = await findOwners(this.#dependencies.orm.em.fork(), network, recipients);
    const payments: FoundPayment[] = [];
    const unconfirmed: UnconfirmedFound[] = [];
    for (const block of owners.size === 0 ? [] : blocks) {
      const ours = block.transfers.flatMap((transfer) => {
        const owner = owners.get(transfer.toHash);
        return owner === undefined ? [] : [{ ...transfer, blockTime: block.time, owner }];
      });
      for (const payment of ours) {
        const { shownBy } = payment;
        if (shownBy.length >= chain.confirmingNodes) payments.push(payment);
        else {
          const says = shownBy.map((node) => ({ node, says: 'shows it' }));
          unconfirmed.push({ ...payment, blockHash: block.hash, says });
        }
      }
    }
    return { payments, unconfirmed };
  }

  async #record(): Promise<void> {
    if (performance.now() < this.#recordedAtMs + RECORD_EVERY_MS) return;
    this.#recordedAtMs = performance.now();
    await recordChainState(this.#dependencies.orm, this.#tron.network, this.#tron.chain.state());
  }

  #report(): ScanReport {
    const cursor = this.#cursor;
    if (cursor === null && this.#unreadable === null) return { state: 'idle' };
    const { solidBlockNumber, node, nodes } = this.#tron.chain.state();
    const lag =
      cursor === null
        ? { blocks: null, seconds: null }
        : scanLag({ blockNumber: cursor.number, blockTime: cursor.time, solidBlockNumber });
    if (this.#unreadable !== null || (lag.seconds ?? 0) > MAX_LAG_SECONDS) {
      const at = { network: this.#tron.network, block: cursor?.number ?? null, solidBlockNumber, lag, node };
      this.#dependencies.logger.warn({ ...at, unreadable: this.#unreadable }, 'the scan is behind the chain');
    }
    return {
      state: 'scanning',
      block: cursor && { number: cursor.number, time: cursor.time?.toISOString() ?? null },
      lag,
      solidBlockNumber,
      node,
      nodes: nodes.map(({ name, state, problem }) => ({ name, state, problem })),
      unreadable: this.#unreadable,
    };
  }
}
