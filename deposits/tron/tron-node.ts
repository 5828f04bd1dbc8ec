import type { Logger } from 'pino';
import type { NodeApi } from './node-api.ts';
import { NodeHealth, NodeProblem, type Recovery } from './node-health.ts';
import { type Header, readCalls, readHeader, readSolidBlock } from './read-block.ts';
import { readRun } from './read-run.ts';
import type { BlockRef, SeenTransfer, SolidBlock } from './tron-chain.ts';

export interface ChainTimings extends Recovery {
  /** For a whole response. */
  requestTimeoutMs: number;
  /** How long a node may claim to have a block without returning it. */
  patienceMs: number;
  /** How long to read one run of blocks. */
  runMs: number;
  /** Blocks come every 3 s. A node that had no new one for this long may have stopped. */
  overdueMs: number;
  /** How often to check a standby node. */
  checkEveryMs: number;
  /** How long to ask the nodes whether a payment is in its block. */
  confirmationMs: number;
  /** How long what a node has said about the next blocks counts without asking it again. */
  rememberedMs: number;
}

/** Blocks fetched at once, and so in memory with all their transactions. */
const MAX_AT_ONCE = 8;
/**
 * After an overload, the number of concurrent requests to a node is halved, and not raised again for this
 * long.
 */
const SLOWED_MS = 60_000;
/** A node that takes longer for a block is slow, and one that takes a few times longer slower still. */
const SLOW_MS = 500;
/** How long a node counts as slow without being read from, so that it is tried again. */
const SLOW_FOR_MS = 600_000;
/** A minute of blocks. Several nodes behind one address differ by a few. */
export const BEHIND_BLOCKS = 20;
/** Blocks that are not solid yet to look at in one call. */
const MAX_UNSOLID = 5;

async function* noInfos() {}

/** One node and its health. It throws only {@link NodeProblem}s, or the reason of an aborted signal. */
export class TronNode {
  readonly name: string;
  /** As a source of solid blocks. */
  readonly health: NodeHealth;
  /** As a source of hints. A node can offer one API without the other. */
  readonly hints: NodeHealth;
  /** The newest solid block it reported. */
  newest: Header | null = null;
  readonly #api: NodeApi;
  readonly #usdtHash: string;
  readonly #timings: ChainTimings;
  #atOnce = MAX_AT_ONCE;
  #slowedAtMs = 0;
  /** How long it takes to read a block, as a moving average, and when a block was last read. */
  #pace = { blockMs: 0, measuredAtMs: 0 };
  /** The block that it claims to have but did not return, and since when. */
  #missing: { number: number; sinceMs: number } | null = null;
  /** The blocks that it showed last, and until when they count. */
  #shown: { after: BlockRef; blocks: SolidBlock[]; untilMs: number } | null = null;

  /** @param node.usdtHash the contract's 20 bytes, in hex */
  constructor(
    { name, api, usdtHash }: { name: string; api: NodeApi; usdtHash: string },
    timings: ChainTimings,
    logger: Logger,
  ) {
    this.name = name;
    this.#api = api;
    this.#usdtHash = usdtHash;
    this.#timings = timings;
    this.health = new NodeHealth(name, 'solid blocks', timings, logger);
    this.hints = new NodeHealth(name, 'blocks that are not solid yet', timings, logger);
  }

  /**
   * How slow it is, in coarse steps, so that nodes which differ little keep their order: 0 if it is fast, or
   * was not read from lately.
   */
  get slowness(): number {
    return Math.floor(Math.log2(1 + this.#blockMs() / SLOW_MS));
  }

  /** The blocks after that one as the node has shown them within the last minute; null if it has not. */
  remembered(after: BlockRef): SolidBlock[] | null {
    if (this.#shown === null || this.#timings.nowMs() >= this.#shown.untilMs) return null;
    const isSame = this.#shown.after.number === after.number && this.#shown.after.hash === after.hash;
    return isSame ? this.#shown.blocks : null;
  }

  /** Has the next blocks read from the node again. */
  forget(): void {
    this.#shown = null;
  }

  /**
   * The node's blocks after that one. At the head of the chain, reading a block takes two calls, and finding
   * none takes one.
   * @returns with `isLevel` if that block is the node's newest
   */
  async readAfter(
    after: BlockRef,
    atMost: number,
    signal: AbortSignal,
  ): Promise<{ blocks: SolidBlock[]; isLevel: boolean }> {
    const newest = await this.#hearNewest(after.number, signal);
    const isLevel = newest.number === after.number;
    if (isLevel) mustBeSame(newest, after);
    if (newest.number <= after.number) return { blocks: [], isLevel };
    const read = async (number: number, ownSignal: AbortSignal) => {
      const beganAtMs = this.#timings.nowMs();
      const header = number === newest.number ? newest : await this.#api.solidBlock(number, ownSignal);
      const block = header === null ? null : await this.#readWhole(header, ownSignal);
      if (block !== null) this.#measured(this.#timings.nowMs() - beganAtMs);
      return block;
    };
    const last = Math.min(newest.number, after.number + atMost);
    const atOnce = this.#mayAskAtOnce();
    const { blocks, problem } = await readRun(
      read,
      after,
      { last, atOnce, runMs: this.#timings.runMs, nowMs: () => this.#timings.nowMs() },
      signal,
    );
    if (problem !== null && blocks.length === 0) throw problem;
    if (problem !== null) this.failed(problem);
    if (blocks.length === 0) this.#missed(after.number + 1);
    else this.#shown = { after, blocks, untilMs: this.#timings.nowMs() + this.#timings.rememberedMs };
    return { blocks, isLevel };
  }

  /** Checks whether the node could be read from, and records the result in its health. */
  async check(after: BlockRef, signal: AbortSignal): Promise<void> {
    const newest = await this.#hearNewest(after.number, signal);
    if (newest.number < after.number) return;
    const header = await this.#api.solidBlock(after.number, signal);
    if (header === null) return;
    mustBeSame(header, after);
    if ((await this.#readWhole(header, signal)) === null)
      throw new NodeProblem('failing', 'block_incomplete');
  }

  /** The last solid block before `time`; block 0 if there is none. */
  async findLastBefore(time: Date, signal: AbortSignal): Promise<BlockRef & { time: Date }> {
    const newest = await this.#hearNewest(0, signal);
    let before: BlockRef & { time: Date } = { number: 0, hash: null, time };
    if (newest.time < time) before = newest;
    let notBefore = newest.number;
    while (notBefore - before.number > 1) {
      const middle = Math.floor((before.number + notBefore) / 2);
      const header = await this.#api.solidBlock(middle, signal);
      if (header === null) throw new NodeProblem('failing', 'block_forgotten');
      if (header.time < time) before = header;
      else notBefore = middle;
    }
    return { number: before.number, hash: before.hash, time: before.time };
  }

  /** The whole block; null if it does not have all of it, or another one with that number. */
  async readBlock(block: BlockRef, signal: AbortSignal): Promise<SolidBlock | null> {
    const header = await this.#api.solidBlock(block.number, signal);
    return header?.hash === block.hash ? this.#readWhole(header, signal) : null;
  }

  /** Whether it has this solid block, and the next one, if it has that, is not before `time`. */
  async isLastBefore(time: Date, block: BlockRef, signal: AbortSignal): Promise<boolean> {
    const header = await this.#api.solidBlock(block.number, signal);
    if (header === null || (block.hash !== null && header.hash !== block.hash)) return false;
    const next = await this.#api.solidBlock(block.number + 1, signal);
    return next === null || next.time >= time;
  }

  /** Transfers that calls in its newest blocks after that one ask for. */
  async readUnsolid(
    after: number | null,
    signal: AbortSignal,
  ): Promise<{ number: number; transfers: SeenTransfer[] }> {
    const answer = await this.#api.newestBlock(signal);
    const newest = readHeader(answer);
    if (newest === null) throw new NodeProblem('failing', 'no_blocks');
    const { number } = newest;
    // A height far above this one was false, and must not hide the blocks up to it.
    const known = after === null || after > number + BEHIND_BLOCKS ? number - 1 : after;
    if (number <= known) return { number: known, transfers: [] };
    const from = Math.max(known + 1, number - MAX_UNSOLID + 1);
    const earlier = Array.from({ length: number - from }, (_, at) => from + at);
    const answers = await Promise.all(earlier.map((one) => this.#api.block(one, signal)));
    const transfers = [...answers, answer].flatMap((one, at) => readCalls(one, from + at, this.#usdtHash));
    return { number, transfers };
  }

  failed(problem: NodeProblem): void {
    this.health.failed(problem);
    if (!/^(http_4|timeout|overloaded)/.test(problem.code)) return;
    this.#atOnce = Math.max(1, Math.floor(this.#atOnce / 2));
    this.#slowedAtMs = this.#timings.nowMs();
  }

  close(): void {
    this.#api.close();
  }

  #blockMs(): number {
    const { blockMs, measuredAtMs } = this.#pace;
    return this.#timings.nowMs() - measuredAtMs < SLOW_FOR_MS ? blockMs : 0;
  }

  #measured(tookMs: number): void {
    const before = this.#blockMs();
    const blockMs = before === 0 ? tookMs : before + (tookMs - before) / 8;
    this.#pace = { blockMs, measuredAtMs: this.#timings.nowMs() };
  }

  async #hearNewest(expectedNumber: number, signal: AbortSignal): Promise<Header> {
    const newest = await this.#api.newestSolid(signal);
    this.newest = newest;
    if (newest.number + BEHIND_BLOCKS < expectedNumber)
      throw new NodeProblem('behind', `${expectedNumber - newest.number}_blocks_behind`);
    return newest;
  }

  async #readWhole(header: Header, signal: AbortSignal): Promise<SolidBlock | null> {
    const { number, txHashes } = header;
    const infos = txHashes.length === 0 ? noInfos() : this.#api.solidInfos(number, signal);
    const block = await readSolidBlock(header, infos, this.#usdtHash, this.name);
    if (block !== null && block.number === this.#missing?.number) this.#missing = null;
    return block;
  }

  /**
   * A node may lack a block for a moment after it arrived, or if there are several nodes behind one address.
   */
  #missed(number: number): void {
    const nowMs = this.#timings.nowMs();
    if (this.#missing?.number !== number) this.#missing = { number, sinceMs: nowMs };
    if (nowMs - this.#missing.sinceMs >= this.#timings.patienceMs)
      throw new NodeProblem('failing', 'block_incomplete');
  }

  #mayAskAtOnce(): number {
    if (this.#atOnce < MAX_AT_ONCE && this.#timings.nowMs() - this.#slowedAtMs > SLOWED_MS) {
      this.#atOnce *= 2;
      this.#slowedAtMs = this.#timings.nowMs();
    }
    return this.#atOnce;
  }
}

function mustBeSame(header: Header, ref: BlockRef): void {
  if (ref.hash !== null && header.hash !== ref.hash) throw new NodeProblem('contradicting', 'other_chain');
}
