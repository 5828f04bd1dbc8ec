import type { Orm } from '../../db/orm.ts';
import { transaction } from '../../db/transaction.ts';
import { coalesce } from '../../process/coalesce.ts';
import { asAccount, asService } from '../../process/work-context.ts';
import { settleTransaction, settleTransactions } from './settle-transactions.ts';
import type { Settled, Settlement, SettlementOutcome } from './settlement.ts';

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
 * Settlements of one account wait for each other anyway, at the row of its prepaid balance, and a transaction with many
 * of them costs little more than one with one. So each account has one transaction under way at a time, and few are
 * under way altogether; what arrives meanwhile goes together into the next ones. What fails, or meets a lock that is
 * held for long, is tried again without the others (docs/decisions/settlements-in-batches.md).
 * @param eventsWritten is called after each commit
 */
export function createSettlementQueue(orm: Orm, eventsWritten: () => void): SettlementQueue {
  const settle = coalesce<Settlement, Settled>({
    mostTogether: MAX_TOGETHER,
    mostUnderWay: MAX_UNDER_WAY,
    laneOf: accountOf,
    async run(settlements) {
      try {
        const outcomes = await asService('settlements', () => settleTogether(settlements, MAX_LOCK_WAIT_MS));
        return outcomes.map(settledOf);
      } catch {
        // The error need not be everybody's.
        return [...Map.groupBy(settlements, accountOf).values()].flatMap((ofOneAccount) =>
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
   * Settles what belongs to one account, in its own turns and for as long as a session may wait for a lock. If that ends
   * in an error, settles each alone: the error it meets then is its own.
   */
  function settleApart(settlements: readonly Settlement[]): Promise<Settled>[] {
    return asAccount(settlements[0] as Settlement, () => {
      const together =
        settlements.length > 1 ? settleTogether(settlements, null).catch(() => null) : Promise.resolve(null);
      return settlements.map(async (settlement, index) => {
        const outcome = (await together)?.[index];
        if (outcome !== undefined) return settledOf(outcome);
        const settled = await transaction(orm, (tx) => settleTransaction(tx, settlement));
        eventsWritten();
        return settled;
      });
    });
  }

  return { settle };
}

const accountOf = ({ mode, partnerId }: Settlement): string => `${mode}/${partnerId}`;

async function settledOf(outcome: SettlementOutcome): Promise<Settled> {
  if (outcome instanceof Error) throw outcome;
  return outcome;
}
