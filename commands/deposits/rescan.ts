import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { TronNetwork } from '../../domain/deposit.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import { Refusal } from '../idempotency/refusal.ts';

/**
 * Has the scan of a chain go on from a block that it has come to before, while it runs. What was found before stays as it
 * is, and is not found again. A rescan from too early a block is taken back by one from where the scan had come to.
 * @returns the last block that was ever taken
 * @throws Refusal where the scan has not begun, or has yet to come to that block: it skips none that was never read.
 */
export function rescanFrom(
  { orm, actor }: Operator,
  { network, fromBlock }: { network: TronNetwork; fromBlock: number },
): Promise<{ cameTo: number }> {
  return transaction(orm, async (tx) => {
    const [scan] = await query<{ block_number: string }>(
      tx,
      `SELECT greatest(block_number, furthest_block_number) AS block_number FROM chain_scan WHERE network = $1
       FOR NO KEY UPDATE`,
      [network],
    );
    if (scan === undefined) {
      throw new Refusal(
        `${network} has not been scanned yet: the scan starts on its own, just before the first deposit address was created.`,
      );
    }
    const cameTo = Number(scan.block_number);
    if (fromBlock > cameTo) {
      throw new Refusal(
        `The scan of ${network} is at block ${cameTo} and will get to ${fromBlock} on its own: give a block up to ${cameTo}.`,
      );
    }
    await query(
      tx,
      'UPDATE chain_scan SET block_number = $2, block_hash = NULL, block_time = NULL WHERE network = $1',
      [network, fromBlock - 1],
    );
    recordAudit(tx, actor, 'tron.rescan', network, { fromBlock, cameTo });
    return { cameTo };
  });
}
