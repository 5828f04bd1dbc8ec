import { z } from 'zod';
import { readJsonFile, writePrivateFile } from '../process/files.ts';
import { Block, type Chain, hashBefore } from './chain.ts';
import { type Payment, tokenTransfer } from './drafts.ts';
import { Transaction } from './transaction.ts';

/** Blocks at equal distances, up to the first of the next segment. */
const Segment = z.object({ firstNumber: z.int(), startTimeMs: z.int(), everyMs: z.int() });
type Segment = z.infer<typeof Segment>;

const State = z.object({
  segments: z.array(Segment).min(1),
  /** Blocks up to this time may have been shown, so they never change. */
  shownUntilMs: z.int(),
  /** A block that was shown, so that a start does not have to make all earlier blocks to get its hash. */
  shown: z.object({ number: z.int(), hash: z.string() }).optional(),
  /** The only content of blocks. */
  payments: z.array(
    z.object({ block: z.int(), from: z.string().optional(), to: z.string(), valueMicroUsdt: z.string() }),
  ),
});

const EVERY_MS = 1_000;
const EVERY_MS_WHILE_STOPPED = 60_000;
const FIRST_BLOCKS = 60;
const PROMISE_MS = 60_000;

/**
 * A chain that follows the clock and resumes after a stop. It has a block every second, and one a minute for
 * the time it was stopped, so that the scan catches up with a weekend at once. The file has what the blocks
 * are made of, not the blocks.
 */
export class ClockChain implements Chain {
  readonly solidAfterBlocks = 2;
  readonly #file: string;
  readonly #nowMs: () => number;
  readonly #state: z.infer<typeof State>;
  readonly #contents = new Map<number, Transaction[]>();
  readonly #hashes = new Map<number, string>();
  #newestMs: number;

  /** @param nowMs the clock */
  constructor(file: string, nowMs: () => number = Date.now) {
    this.#file = file;
    this.#nowMs = nowMs;
    this.#newestMs = nowMs();
    this.#state = resumed(readJsonFile(file, State), this.#newestMs);
    for (const { block, valueMicroUsdt, ...payment } of this.#state.payments)
      this.#put(block, { ...payment, valueMicroUsdt: BigInt(valueMicroUsdt) });
    const { shown } = this.#state;
    if (shown !== undefined) this.#hashes.set(shown.number, shown.hash);
    this.#save();
  }

  headNumber(): number {
    // Setting the clock back removes no block.
    this.#newestMs = Math.max(this.#newestMs, this.#nowMs());
    if (this.#newestMs > this.#state.shownUntilMs - PROMISE_MS / 2) {
      this.#state.shownUntilMs = this.#newestMs + PROMISE_MS;
      this.#save();
    }
    return numberAt(this.#state.segments, this.#newestMs);
  }

  solidNumber(): number {
    return this.headNumber() - this.solidAfterBlocks;
  }

  block(number: number): Block | undefined {
    if (number < 0 || number > this.headNumber()) return undefined;
    return this.#make(number);
  }

  /** Puts a payment into the next block. It is on disk before anybody sees that block. */
  pay(payment: Payment): { txId: string; block: number } {
    const block = this.headNumber() + 1;
    this.#state.payments.push({ ...payment, block, valueMicroUsdt: payment.valueMicroUsdt.toString() });
    this.#save();
    return { txId: this.#put(block, payment).id, block };
  }

  /** Call it last, so that the time until the next start counts as a stop. */
  close(): void {
    this.#state.shownUntilMs = this.#newestMs;
    this.#save();
  }

  #put(number: number, payment: Payment): Transaction {
    const content = this.#contents.get(number) ?? [];
    this.#contents.set(number, content);
    const transaction = new Transaction(tokenTransfer(payment), {
      blockNumber: number,
      blockTimeMs: blockTime(this.#state.segments, number),
      index: content.length,
    });
    content.push(transaction);
    return transaction;
  }

  #make(number: number): Block {
    const place = {
      number,
      timeMs: blockTime(this.#state.segments, number),
      parentHash: this.#hashOf(number - 1),
    };
    const block = new Block(place, this.#contents.get(number));
    this.#hashes.set(number, block.hash);
    return block;
  }

  /** Makes the blocks from the last one before it whose hash is known. */
  #hashOf(number: number): string {
    if (number < 0) return hashBefore(0);
    let from = number;
    while (from >= 0 && !this.#hashes.has(from)) from--;
    while (from < number) this.#make(++from);
    return this.#hashes.get(number) as string;
  }

  #save(): void {
    const number = numberAt(this.#state.segments, this.#newestMs);
    this.#state.shown = { number, hash: this.#hashOf(number) };
    writePrivateFile(this.#file, JSON.stringify(this.#state));
  }
}

/** The state after a start: what was shown stays, and blocks are added for the time since. */
function resumed(known: z.infer<typeof State> | undefined, nowMs: number): z.infer<typeof State> {
  const startMs = Math.ceil(nowMs / EVERY_MS) * EVERY_MS;
  if (known === undefined) {
    const startTimeMs = startMs - FIRST_BLOCKS * EVERY_MS_WHILE_STOPPED;
    const slow = { firstNumber: 0, startTimeMs, everyMs: EVERY_MS_WHILE_STOPPED };
    const run = { firstNumber: FIRST_BLOCKS, startTimeMs: startMs, everyMs: EVERY_MS };
    return { segments: [slow, run], shownUntilMs: nowMs, payments: [] };
  }
  const segments = [...known.segments];
  let last = Math.max(numberAt(segments, known.shownUntilMs), known.payments.at(-1)?.block ?? 0);
  let lastMs = blockTime(segments, last);
  const missed = Math.floor((startMs - 1 - lastMs) / EVERY_MS_WHILE_STOPPED);
  if (missed > 0) {
    segments.push({
      firstNumber: last + 1,
      startTimeMs: lastMs + EVERY_MS_WHILE_STOPPED,
      everyMs: EVERY_MS_WHILE_STOPPED,
    });
    last += missed;
    lastMs += missed * EVERY_MS_WHILE_STOPPED;
  }
  segments.push({
    firstNumber: last + 1,
    startTimeMs: Math.max(startMs, lastMs + EVERY_MS),
    everyMs: EVERY_MS,
  });
  return { ...known, segments };
}

function numberAt(segments: readonly Segment[], timeMs: number): number {
  const at = segments.findLastIndex(({ startTimeMs }) => startTimeMs <= timeMs);
  const segment = segments[at];
  if (segment === undefined) return -1;
  const number = segment.firstNumber + Math.floor((timeMs - segment.startTimeMs) / segment.everyMs);
  const next = segments[at + 1];
  return next === undefined ? number : Math.min(number, next.firstNumber - 1);
}

function blockTime(segments: readonly Segment[], number: number): number {
  const segment = segments.findLast(({ firstNumber }) => firstNumber <= number);
  if (segment === undefined) throw new RangeError(`the chain has no block ${number}`);
  return segment.startTimeMs + (number - segment.firstNumber) * segment.everyMs;
}
