import { readCursor } from '../../../deposits/chain-scan.ts';
import { type FoundPayment, takeBlocks } from '../../../deposits/take-blocks.ts';
import type { Orm } from '../../../platform/db/orm.ts';

/** Takes the block after those that were taken, as the scan does. */
export async function takeNextBlock(orm: Orm, payments: FoundPayment[], time = new Date()): Promise<void> {
  const { number = 0, hash = null } = (await readCursor(orm.em.fork(), 'private')) ?? {};
  const last = { number: number + 1, hash: String(number + 1).padStart(64, '0'), time };
  await takeBlocks(orm, { network: 'private', after: { number, hash }, last, payments, unconfirmed: [] });
}
