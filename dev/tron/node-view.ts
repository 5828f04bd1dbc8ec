import { Block, type Chain, hashBefore } from './chain.ts';
import type { Draft } from './drafts.ts';
import { Transaction } from './transaction.ts';

/** A block as a node shows it, whose header may belong to other transactions. */
type ShownBlock = Pick<Block, 'number' | 'timeMs' | 'header' | 'hash' | 'transactions'>;

/** What one node shows of the chain: the truth, until a test changes it. It can be changed at any time. */
export class NodeView {
  /** How many blocks it is behind. */
  lagBlocks = 0;
  /** The last block it will ever have. */
  stopsAt = Number.POSITIVE_INFINITY;
  /** How many blocks that are not solid yet it shows as solid. */
  unsolidBlocks = 0;
  /** How many more blocks it claims to have than there are. */
  claimedBlocks = 0;
  /** From this block on it is on a fork of its own, which it shows as solid. Its blocks' hashes are right. */
  forksAt = Number.POSITIVE_INFINITY;
  readonly #chain: Chain;
  readonly #name: string;
  readonly #lies = new Map<number, (transactions: readonly Transaction[]) => readonly Transaction[]>();
  readonly #missingInfos = new Set<string>();
  #fork: { at: number; blocks: Map<number, Block> } = { at: Number.NaN, blocks: new Map() };

  constructor(chain: Chain, name: string) {
    this.#chain = chain;
    this.#name = name;
  }

  /**
   * Shows these transactions instead of the block's own, under the block's header; on its own fork, with a
   * right header.
   */
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
    this.lagBlocks = this.unsolidBlocks = this.claimedBlocks = 0;
    this.stopsAt = this.forksAt = Number.POSITIVE_INFINITY;
    this.#lies.clear();
    this.#missingInfos.clear();
  }

  newestNumber(isSolid: boolean): number {
    const head = this.#chain.headNumber();
    const number = isSolid ? Math.min(this.#chain.solidNumber() + this.unsolidBlocks, head) : head;
    return Math.min(number - this.lagBlocks, this.stopsAt) + this.claimedBlocks;
  }

  blockJson(number: number, isSolid: boolean): string | null {
    const block = this.#block(number, isSolid);
    if (block === undefined) return null;
    const { number: _, ...withoutNumber } = block.header;
    const header = JSON.stringify({
      // Protobuf's JSON leaves out a 0.
      raw_data: number > 0 ? block.header : withoutNumber,
      witness_signature: `${block.hash}${block.hash}00`,
    });
    const transactions =
      block.transactions.length > 0
        ? `,"transactions":[${block.transactions.map(({ json }) => json).join()}]`
        : '';
    return `{"blockID":"${block.hash}","block_header":${header}${transactions}}`;
  }

  /** `[]` for an empty block, and for one that it does not have. */
  infosJson(number: number, isSolid: boolean): string {
    const block = this.#block(number, isSolid);
    const shown = (block?.transactions ?? []).filter(({ id }) => !this.#missingInfos.has(id));
    return `[${shown.map((one) => one.infoJson(number, block?.timeMs ?? 0)).join()}]`;
  }

  #block(number: number, isSolid: boolean): ShownBlock | undefined {
    const newest = this.newestNumber(isSolid);
    if (number > newest) return undefined;
    if (number > newest - this.claimedBlocks)
      return new Block({ number, timeMs: Date.now(), parentHash: hashBefore(number) });
    if (number >= this.forksAt) return this.#forked(number);
    const block = this.#chain.block(number);
    const lie = this.#lies.get(number);
    if (block === undefined || lie === undefined) return block;
    const { timeMs, header, hash } = block;
    return { number, timeMs, header, hash, transactions: lie(block.transactions) };
  }

  /**
   * A block of its own fork, which has the contents of the true chain's blocks, or what it lies about them.
   */
  #forked(number: number): Block | undefined {
    if (this.#fork.at !== this.forksAt) this.#fork = { at: this.forksAt, blocks: new Map() };
    const known = this.#fork.blocks.get(number);
    if (known !== undefined) return known;
    let forked: Block | undefined;
    for (let next = this.forksAt; next <= number; next++) {
      const block = this.#chain.block(next);
      if (block === undefined) return undefined;
      const parent = forked ?? this.#chain.block(next - 1);
      const place = { number: next, timeMs: block.timeMs, parentHash: parent?.hash ?? hashBefore(next) };
      const content = this.#lies.get(next)?.(block.transactions) ?? block.transactions;
      forked = new Block(place, content, `fork of ${this.#name}`);
      this.#fork.blocks.set(next, forked);
    }
    return forked;
  }

  #numberOf(txId: string): number {
    for (let number = this.#chain.headNumber(); number >= 0; number--) {
      const block = this.#chain.block(number);
      if (block?.transactions.some(({ id }) => id === txId)) return number;
    }
    throw new RangeError(`no block has transaction ${txId}`);
  }
}
