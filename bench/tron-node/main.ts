import type { IncomingMessage, ServerResponse } from 'node:http';
import { Block, type Chain, hashBefore } from '../../dev/tron/chain.ts';
import { type Payment, tokenTransfer } from '../../dev/tron/drafts.ts';
import { startFakeNode } from '../../dev/tron/fake-node.ts';
import { NodeView } from '../../dev/tron/node-view.ts';
import { Transaction } from '../../dev/tron/transaction.ts';
import { monotonicMs } from '../support/measure.ts';
import { RealSizedBlocks } from './real-sized-blocks.ts';

/** Blocks up to `through`, as large as real ones and with these payments, to be made in advance. */
export interface Preparation {
  through: number;
  payments: [blockNumber: number, to: string, valueMicroUsdt: string][];
}

/** The parent's orders: to make blocks, or to make those up to a number solid. */
export type Order = { prepare: Preparation } | { solid: number };
export interface Done {
  atMs: number;
}

const BLOCK_EVERY_MS = 3_000;

/**
 * A node in a process of its own. It sends its URL to the parent, and the time when each order was carried
 * out. The answers about prepared blocks are ready as bytes.
 */
class PreparedChain implements Chain {
  readonly firstNumber = 70_000_000;
  readonly #startMs = Date.now() - 12 * 3_600_000;
  readonly #blocks = new Map<number, Block>();
  readonly #content = new RealSizedBlocks();
  readonly #view = new NodeView(this, 'bench');
  readonly #answers = new Map<string, Buffer>();
  #solid = this.firstNumber;

  constructor() {
    const { firstNumber: number } = this;
    const place = { number, timeMs: this.#startMs, parentHash: hashBefore(number) };
    this.#blocks.set(number, new Block(place));
  }

  headNumber = (): number => this.#solid;
  solidNumber = (): number => this.#solid;
  block = (number: number): Block | undefined => this.#blocks.get(number);

  /** Discards earlier blocks except for the last one. */
  prepare({ through, payments }: Preparation): void {
    const paid = Map.groupBy(payments, ([number]) => number);
    const last = this.#blocks.get(this.#solid);
    this.#blocks.clear();
    this.#answers.clear();
    if (last !== undefined) this.#blocks.set(last.number, last);
    const before = this.#solid;
    for (let number = before + 1; number <= through; number++) {
      const timeMs = this.#startMs + (number - this.firstNumber) * BLOCK_EVERY_MS;
      const ours = (paid.get(number) ?? []).map(([, to, value], index) => {
        const payment: Payment = { to, valueMicroUsdt: BigInt(value) };
        return new Transaction(tokenTransfer(payment), { blockNumber: number, blockTimeMs: timeMs, index });
      });
      const parentHash = this.#blocks.get(number - 1)?.hash ?? hashBefore(number);
      const content = [...this.#content.contentOf(number), ...ours];
      this.#blocks.set(number, new Block({ number, timeMs, parentHash }, content));
    }
    // The answers are rendered while the blocks are solid.
    this.#solid = through;
    for (let number = before + 1; number <= through; number++) {
      const block = Buffer.from(this.#view.blockJson(number, true) ?? '{}');
      this.#answers.set(`/walletsolidity/getblockbynum ${number}`, block);
      this.#answers.set(
        `/walletsolidity/gettransactioninfobyblocknum ${number}`,
        Buffer.from(this.#view.infosJson(number, true)),
      );
    }
    this.#solid = before;
  }

  become(solid: number): void {
    this.#solid = solid;
  }

  serve = (request: IncomingMessage, body: string, response: ServerResponse): boolean => {
    const { num } = JSON.parse(body || '{}');
    const answer = num > this.#solid ? undefined : this.#answers.get(`${request.url} ${num}`);
    if (answer === undefined) return false;
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length });
    response.end(answer);
    return true;
  };
}

const chain = new PreparedChain();
const node = await startFakeNode(chain, { alsoServe: chain.serve });
process.on('message', (order: Order) => {
  if ('prepare' in order) chain.prepare(order.prepare);
  else chain.become(order.solid);
  const done: Done = { atMs: monotonicMs() };
  process.send?.(done);
});
process.on('disconnect', () => process.exit());
process.send?.({ url: node.url, firstNumber: chain.firstNumber });
