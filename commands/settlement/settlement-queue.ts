import type { Orm } from '../../db/orm.ts';
import { transaction } from '../../db/transaction.ts';
import { asAccount, asService } from '../../process/working-for.ts';
import { settleTransaction, settleTransactions } from './settle-transactions.ts';
import type { Settled, Settlement, SettlementOutcome } from './settlement.ts';

const MOST_TOGETHER = 100;
/** More at once, on one server, each take as much longer. */
const MOST_UNDER_WAY = 4;
/** How long others may have to wait for an account they share a transaction with. */
const LONGEST_LOCK_WAIT_MS = 250;

export interface SettlementQueue {
  /**
   * Settles in a transaction that others may share.
   * @throws ApiError `card_not_found`, `invalid_state`, `idempotency_conflict`, `validation_failed`
   */
  settle(settlement: Settlement): Promise<Settled>;
}

interface Waiting {
  settlement: Settlement;
  resolve(settled: Settled): void;
  reject(error: unknown): void;
}

/**
 * Settlements of one account wait for each other anyway, at the row of its prepaid balance, and a transaction with many
 * of them costs little more than one with one. So each account has one transaction under way at a time, and few are
 * under way altogether; what comes in meanwhile goes together into the next ones. What fails, or meets a lock that is
 * held for long, is tried again without the others (docs/decisions/settlements-in-batches.md).
 * @param eventsWritten is called after each commit
 */
export function createSettlementQueue(orm: Orm, eventsWritten: () => void): SettlementQueue {
  /** By account; who waits longest is first. */
  const lines = new Map<string, Waiting[]>();
  const busy = new Set<string>();
  let free = MOST_UNDER_WAY;
  let isServing = false;

  /** At the end of this turn of the event loop, so that what came in together goes together. */
  function serveSoon(): void {
    if (isServing) return;
    isServing = true;
    setImmediate(() => {
      isServing = false;
      for (const batch of nextBatches()) void serve(batch);
    });
  }

  /** Shares out the accounts that can be served among the transactions that are free. */
  function nextBatches(): Map<string, Waiting[]>[] {
    const ready = [...lines.keys()].filter((account) => !busy.has(account));
    const each = Math.ceil(ready.length / Math.max(free, 1));
    const batches: Map<string, Waiting[]>[] = [];
    for (let room = free; room > 0 && ready.length > 0; room--) batches.push(take(ready.splice(0, each)));
    return batches;
  }

  function take(accounts: string[]): Map<string, Waiting[]> {
    const batch = new Map<string, Waiting[]>();
    let room = MOST_TOGETHER;
    for (const account of accounts) {
      const line = lines.get(account) ?? [];
      if (room === 0) break;
      const taken = line.splice(0, room);
      room -= taken.length;
      batch.set(account, taken);
      busy.add(account);
      // Behind the others, if there is more of it.
      lines.delete(account);
      if (line.length > 0) lines.set(account, line);
    }
    return batch;
  }

  async function serve(batch: ReadonlyMap<string, Waiting[]>): Promise<void> {
    free -= 1;
    const all = [...batch.values()].flat();
    const isSettled = await asService('settlements', () => settleTogether(orm, all, LONGEST_LOCK_WAIT_MS));
    free += 1;
    serveSoon();
    for (const [account, waiting] of batch) {
      const settled = isSettled ? Promise.resolve() : apart(waiting);
      void settled.then(() => {
        eventsWritten();
        busy.delete(account);
        serveSoon();
      });
    }
  }

  function apart(all: Waiting[]): Promise<void> {
    const [first] = all;
    return first === undefined ? Promise.resolve() : asAccount(first.settlement, () => settleApart(orm, all));
  }

  return {
    settle: (settlement) =>
      new Promise((resolve, reject) => {
        const account = `${settlement.mode}/${settlement.partnerId}`;
        const waiting = { settlement, resolve, reject };
        const line = lines.get(account);
        if (line === undefined) lines.set(account, [waiting]);
        else line.push(waiting);
        serveSoon();
      }),
  };
}

/** @returns whether each has its answer; false after an error, which need not be everybody's. */
async function settleTogether(
  orm: Orm,
  all: readonly Waiting[],
  longestLockWaitMs: number | null,
): Promise<boolean> {
  const settlements = all.map((waiting) => waiting.settlement);
  let outcomes: SettlementOutcome[];
  try {
    outcomes = await transaction(orm, (tx) => settleTransactions(tx, settlements, longestLockWaitMs));
  } catch {
    return false;
  }
  all.forEach(({ resolve, reject }, index) => {
    const outcome = outcomes[index];
    if (outcome instanceof Error) reject(outcome);
    else resolve(outcome as Settled);
  });
  return true;
}

/**
 * Settles what belongs to one account, in its own turns and for as long as a session may wait for a lock. Should that end
 * in an error, each alone: the error it meets then is its own.
 */
async function settleApart(orm: Orm, all: readonly Waiting[]): Promise<void> {
  if (all.length > 1 && (await settleTogether(orm, all, null))) return;
  await Promise.all(
    all.map(({ settlement, resolve, reject }) =>
      transaction(orm, (tx) => settleTransaction(tx, settlement)).then(resolve, reject),
    ),
  );
}
