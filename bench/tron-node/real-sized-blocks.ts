import { createHash } from 'node:crypto';
import { hashName, toBase58Address } from '../../dev/tron/address.ts';
import { approval, type Draft, failedTransfer, tokenTransfer, trxTransfer } from '../../dev/tron/drafts.ts';
import { Transaction } from '../../dev/tron/transaction.ts';

const POOL_SIZE = 1_200;
const OTHER_TOKEN = toBase58Address(hashName('other token'));

/**
 * Content for blocks as large as real ones: 100 to 300 transactions, a third of them USDT transfers to
 * unknown addresses. They come from one pool, so a block costs next to nothing; a transaction is in many
 * blocks, but only once in each.
 */
export class RealSizedBlocks {
  readonly #pool: readonly Transaction[];

  constructor() {
    const origin = { blockNumber: 1, blockTimeMs: Date.UTC(2026, 0, 1) };
    this.#pool = Array.from(
      { length: POOL_SIZE },
      (_, index) => new Transaction(makeDraft(index), { ...origin, index }),
    );
  }

  /** The same content for the same number. */
  contentOf(number: number): Transaction[] {
    const digest = createHash('sha256').update(`content ${number}`).digest();
    const count = 100 + (digest.readUInt16BE(0) % 201);
    const first = digest.readUInt32BE(2) % this.#pool.length;
    return Array.from(
      { length: count },
      (_, at) => this.#pool[(first + at) % this.#pool.length] as Transaction,
    );
  }
}

function makeDraft(index: number): Draft {
  const to = toBase58Address(hashName(`stranger ${index}`));
  const valueMicroUsdt = BigInt(1_000_000 + index * 10_007);
  if (index % 3 === 0) return tokenTransfer({ to, valueMicroUsdt });
  switch (index % 12) {
    case 1:
      return approval({ to, valueMicroUsdt });
    case 2:
      return failedTransfer({ to, valueMicroUsdt }, 'OUT_OF_ENERGY');
    case 4:
    case 5:
      return tokenTransfer(
        [
          { to, valueMicroUsdt },
          { to, valueMicroUsdt: 1n },
        ],
        OTHER_TOKEN,
      );
    default:
      return trxTransfer(to, 1_000_000 + index);
  }
}
