import { createHash } from 'node:crypto';
import { Writer } from 'protobufjs/minimal.js';
import { hash41, hashName } from './address.ts';
import type { Draft } from './drafts.ts';
import { Transaction } from './transaction.ts';

/** A chain as nodes read it. */
export interface Chain {
  headNumber(): number;
  /** The newest block that is never replaced. */
  solidNumber(): number;
  /** Undefined before the first block and beyond the head. */
  block(number: number): Block | undefined;
}

/** What a block's hash is made of, as java-tron's JSON has it. */
interface RawHeader {
  number: number;
  txTrieRoot: string;
  witness_address: string;
  parentHash: string;
  version: number;
  timestamp: number;
}

export class Block {
  readonly number: number;
  readonly timeMs: number;
  readonly transactions: readonly Transaction[];
  readonly header: RawHeader;
  readonly hash: string;

  /** @param branch tells apart blocks with the same number and parent on two forks */
  constructor(
    { number, timeMs, parentHash }: { number: number; timeMs: number; parentHash: string },
    transactions: readonly Transaction[] = [],
    branch = '',
  ) {
    this.number = number;
    this.timeMs = timeMs;
    this.transactions = transactions;
    this.header = {
      number,
      txTrieRoot:
        transactions.length === 0 ? '0'.repeat(64) : sha256(transactions.map(({ id }) => id).join()),
      witness_address: hash41(hashName(`witness ${branch} ${number % 27}`)),
      parentHash,
      version: 34,
      timestamp: timeMs,
    };
    this.hash = blockId(number, sha256(rawBytes(this.header)));
  }
}

/** The parent of a chain's first block, which no node has. */
export function hashBefore(firstNumber: number): string {
  return blockId(Math.max(0, firstNumber - 1), sha256('before the first block'));
}

/** Like TRON's: the first 8 bytes of the hash are replaced by the number. */
function blockId(number: number, hash: string): string {
  return number.toString(16).padStart(16, '0') + hash.slice(16);
}

/** protocol.BlockHeader.raw (java-tron's Tron.proto). */
function rawBytes(header: RawHeader): Buffer {
  const raw = Writer.create();
  raw.uint32(8).int64(header.timestamp);
  raw.uint32(18).bytes(Buffer.from(header.txTrieRoot, 'hex'));
  raw.uint32(26).bytes(Buffer.from(header.parentHash, 'hex'));
  if (header.number > 0) raw.uint32(56).int64(header.number);
  raw.uint32(74).bytes(Buffer.from(header.witness_address, 'hex'));
  raw.uint32(80).int32(header.version);
  return Buffer.from(raw.finish());
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

export interface HandChainOptions {
  /** The time of the first block; by default an hour ago. */
  startTime?: Date;
  /** By default 0, the genesis block. A node that has dropped older blocks begins later. */
  firstNumber?: number;
  /** The time between blocks. */
  everyMs?: number;
  /** How many newer blocks make a block solid; on TRON, 19 of its 27 witnesses have to follow. */
  solidAfterBlocks?: number;
}

/** A chain that a test drives: the test says when there is a new block, and at which time. */
export class HandChain implements Chain {
  readonly #blocks: Block[];
  readonly #firstNumber: number;
  readonly #everyMs: number;
  readonly #solidAfterBlocks: number;
  #forks = 0;

  constructor(options: HandChainOptions = {}) {
    const { firstNumber = 0, everyMs = 3_000, solidAfterBlocks = 19 } = options;
    const { startTime = new Date(Math.floor(Date.now() / 1_000 - 3_600) * 1_000) } = options;
    this.#firstNumber = firstNumber;
    this.#everyMs = everyMs;
    this.#solidAfterBlocks = solidAfterBlocks;
    this.#blocks = [
      new Block({
        number: firstNumber,
        timeMs: startTime.getTime(),
        parentHash: hashBefore(firstNumber),
      }),
    ];
  }

  headNumber(): number {
    return this.#firstNumber + this.#blocks.length - 1;
  }

  solidNumber(): number {
    return Math.max(this.#firstNumber, this.headNumber() - this.#solidAfterBlocks);
  }

  block(number: number): Block | undefined {
    return this.#blocks[number - this.#firstNumber];
  }

  get head(): Block {
    return this.#blocks[this.#blocks.length - 1] as Block;
  }

  /** Makes the next block. @param time by default one interval after the block before it */
  mine(content: readonly (Draft | Transaction)[] = [], { time }: { time?: Date } = {}): Block {
    const timeMs = time?.getTime() ?? this.head.timeMs + this.#everyMs;
    if (timeMs <= this.head.timeMs)
      throw new RangeError(`block ${this.headNumber() + 1} must be later than its parent`);
    const number = this.headNumber() + 1;
    const transactions = content.map((one, index) =>
      one instanceof Transaction
        ? one
        : new Transaction(one, { blockNumber: number, blockTimeMs: timeMs, index }),
    );
    const place = { number, timeMs, parentHash: this.head.hash };
    const block = new Block(place, transactions, `fork ${this.#forks}`);
    this.#blocks.push(block);
    return block;
  }

  /** Makes this many empty blocks. @returns the last */
  mineMany(count: number, everyMs = this.#everyMs): Block {
    for (let made = 0; made < count; made++) this.mine([], { time: new Date(this.head.timeMs + everyMs) });
    return this.head;
  }

  /** Makes empty blocks up to this time, none later. @returns the head, whose time it is */
  mineUntil(time: Date): Block {
    while (this.head.timeMs + this.#everyMs < time.getTime()) this.mine();
    if (this.head.timeMs < time.getTime()) this.mine([], { time });
    return this.head;
  }

  /** Makes enough empty blocks for the present head to become solid. @returns the block that became solid */
  solidify(): Block {
    const { head } = this;
    this.mineMany(this.#solidAfterBlocks);
    return head;
  }

  /**
   * Replaces the newest `depth` blocks, as a longer fork does.
   * @param contents the contents of its blocks; empty blocks are added until it is the longer one
   */
  fork(depth: number, contents: readonly (readonly (Draft | Transaction)[])[] = []): Block[] {
    if (depth < 1 || depth > this.headNumber() - this.solidNumber())
      throw new RangeError(
        `a fork can replace only blocks that are not solid: 1 to ${this.headNumber() - this.solidNumber()}`,
      );
    this.#blocks.splice(-depth);
    this.#forks++;
    const length = Math.max(depth + 1, contents.length);
    return Array.from({ length }, (_, at) => this.mine(contents[at]));
  }
}
