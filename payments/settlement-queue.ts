import type { Orm } from '../platform/db/orm.ts';
import { transaction } from '../platform/db/transaction.ts';
import { coalesce } from '../platform/process/coalesce.ts';
import { asAccount, asService } from '../platform/process/work-context.ts';
import type { Settled, Settlement, SettlementOutcome } from './decide-settlements.ts';
import { settleTransaction, settleTransactions } from './settle-transactions.ts';

const MAX_TOGETHER = 100;
/** If more transactions run at once on one server, each takes that much longer. */
const MAX_UNDER_WAY = 4;
/** How long others may have to wait for an account they share a transaction with. */
const MAX_LOCK_WAIT_MS = 250;

export interface SettlementQueue {
  /**
   * Settles in a transaction that others may share.
   * @throws ApiError `card_not_found`, `invalid_state`, `idempotency_conflict`, `validation_failed`
   */
  settle(settlement: Settlement): Promise<Settled>;
}

/**
 * Settlements of one account wait for each other anyway, at the row of its prepaid balance, and a transaction
 * with many of them costs little more than one with one. So each account has one transaction under way at a
 * time, and few are under way altogether; what arrives meanwhile goes together into the next ones. What
 * fails, or meets a lock that is held for long, is tried again without the others
 * (docs/decisions/settlements-in-batches.md).
 * @param eventsWritten is called after each commit
 */
export function createSettlementQueue(orm: Orm, eventsWritten: () => void): SettlementQueue {
  const settle = coalesce<Settlement, Settled>({
    maxTogether: MAX_TOGETHER,
    maxUnderWay: MAX_UNDER_WAY,
    laneOf: accountKey,
    async run(settlements) {
      try {
        const outcomes = await asService('settlements', () => settleTogether(settlements, MAX_LOCK_WAIT_MS));
        return outcomes.map(toSettled);
      } catch {
        // The error may come from one account, so settle each account's transactions apart.
        return [...Map.groupBy(settlements, accountKey).values()].flatMap((ofOneAccount) =>
          settleApart(ofOneAccount),
        );
      }
    },
  });

  async function settleTogether(
    settlements: readonly Settlement[],
    longestLockWaitMs: number | null,
  ): Promise<SettlementOutcome[]> {
    const outcomes = await transaction(orm, (tx) => settleTransactions(tx, settlements, longestLockWaitMs));
    eventsWritten();
    return outcomes;
  }

  /**
   * Settles what belongs to one account, in the account's own turns, and waits for locks as long as a session
   * may. If that fails, settles each one alone, so that only the ones that cause an error get it.
   */
  function settleApart(settlements: readonly Settlement[]): Promise<Settled>[] {
    return asAccount(settlements[0] as Settlement, () => {
      const together =
        settlements.length > 1 ? settleTogether(settlements, null).catch(() => null) : Promise.resolve(null);
      return settlements.map(async (settlement, index) => {
        const outcome = (await together)?.[index];
        if (outcome !== undefined) return toSettled(outcome);
        const settled = await transaction(orm, (tx) => settleTransaction(tx, settlement));
        eventsWritten();
        return settled;
      });
    });
  }

  return { settle };
}

const accountKey = ({ mode, partnerId }: Settlement): string => `${mode}/${partnerId}`;

async function toSettled(outcome: SettlementOutcome): Promise<Settled> {
  if (outcome instanceof Error) throw outcome;
  return outcome;
}
