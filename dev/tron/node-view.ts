import { hash41, hashOfName } from './address.ts';
import { Block, blockHash, type Chain } from './chain.ts';
import type { Draft } from './drafts.ts';
import { Transaction } from './transaction.ts';

/** What one node shows of the chain: the truth, until a test changes it. It can be changed at any time. */
export class NodeView {
  /** How many blocks it is behind. */
  lagBlocks = 0;
  /** The last block it will ever have. */
  stopsAt = Number.POSITIVE_INFINITY;
  /** From this block on it is on a fork of its own, which it shows as solid. */
  forksAt = Number.POSITIVE_INFINITY;
  readonly #chain: Chain;
  readonly #name: string;
  readonly #lies = new Map<number, (transactions: readonly Transaction[]) => readonly Transaction[]>();
  readonly #missingInfos = new Set<string>();

  constructor(chain: Chain, name: string) {
    this.#chain = chain;
    this.#name = name;
  }

  /** Shows these transactions instead of the block's own, under the block's correct hash. */
  rewrite(number: number, lie: (transactions: readonly Transaction[]) => readonly Transaction[]): void {
    const before = this.#lies.get(number) ?? ((transactions) => transactions);
    this.#lies.set(number, (transactions) => lie(before(transactions)));
  }

  /** Shows a transaction without its logs, so that it pays nobody. */
  hideLogs(txId: string): void {
    this.rewrite(this.#numberOf(txId), (transactions) =>
      transactions.map((one) => (one.id === txId ? one.altered({ logs: [] }) : one)),
    );
  }

  /** Shows a transaction in a block that does not contain it. */
  forge(number: number, draft: Draft): Transaction {
    const blockTimeMs = this.#chain.block(number)?.timeMs ?? 0;
    const forged = new Transaction(draft, { blockNumber: number, blockTimeMs, index: 1_000_000 });
    this.rewrite(number, (transactions) => [...transactions, forged]);
    return forged;
  }

  /** Leaves a transaction's info out of its block's infos. */
  dropInfo(txId: string): void {
    this.#missingInfos.add(txId);
  }

  /** Shows the truth again. */
  reform(): void {
    this.lagBlocks = 0;
    this.stopsAt = this.forksAt = Number.POSITIVE_INFINITY;
    this.#lies.clear();
    this.#missingInfos.clear();
  }

  newestNumber(isSolid: boolean): number {
    const number = isSolid ? this.#chain.solidNumber() : this.#chain.headNumber();
    return Math.min(number - this.lagBlocks, this.stopsAt);
  }

  blockJson(number: number, isSolid: boolean, isDetailed = true): string | null {
    const block = this.#block(number, isSolid);
    if (block === undefined) return null;
    const header = JSON.stringify({
      raw_data: {
        // Protobuf's JSON leaves out a 0.
        ...(number > 0 && { number }),
        txTrieRoot: blockHash(0, block.transactions.map(({ id }) => id).join()),
        witness_address: hash41(hashOfName(`witness ${number % 27}`)),
        parentHash: this.#hash(number - 1),
        version: 34,
        timestamp: block.timeMs,
      },
      witness_signature: `${block.hash}${block.hash}00`,
    });
    const transactions =
      isDetailed && block.transactions.length > 0
        ? `,"transactions":[${block.transactions.map(({ json }) => json).join()}]`
        : '';
    return `{"blockID":"${this.#hash(number)}","block_header":${header}${transactions}}`;
  }

  /** `[]` for an empty block, and for one that it does not have. */
  infosJson(number: number, isSolid: boolean): string {
    const block = this.#block(number, isSolid);
    const shown = (block?.transactions ?? []).filter(({ id }) => !this.#missingInfos.has(id));
    return `[${shown.map((one) => one.infoJson(number, block?.timeMs ?? 0)).join()}]`;
  }

  /** Finds a transaction by its id. */
  find(txId: string, isSolid: boolean): { transaction: Transaction; number: number; timeMs: number } | null {
    const number = this.#chain.numberOf(txId);
    const block = number === undefined ? undefined : this.#block(number, isSolid);
    const transaction = block?.transactions.find(({ id }) => id === txId);
    if (block === undefined || transaction === undefined) return null;
    return { transaction, number: block.number, timeMs: block.timeMs };
  }

  #block(number: number, isSolid: boolean): Block | undefined {
    if (number > this.newestNumber(isSolid)) return undefined;
    const block = this.#chain.block(number);
    const lie = this.#lies.get(number);
    return block === undefined || lie === undefined
      ? block
      : new Block(number, block.timeMs, lie(block.transactions));
  }

  #hash(number: number): string {
    if (number >= this.forksAt) return blockHash(number, `fork of ${this.#name}`);
    return this.#chain.block(number)?.hash ?? blockHash(Math.max(number, 0), 'before the first block');
  }

  #numberOf(txId: string): number {
    const number = this.#chain.numberOf(txId);
    if (number === undefined) throw new RangeError(`no block has transaction ${txId}`);
    return number;
  }
}
