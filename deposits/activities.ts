import type { DepositVerdict, VersionedDecision } from '../domain/deposit.ts';
import { Label } from '../domain/fields.ts';
import { notifyEvents } from '../platform/db/notifications.ts';
import type { Orm } from '../platform/db/orm.ts';
import { resolveDeposit } from './resolve.ts';
import { markDepositNotified, readWatchedDeposit, type WatchedDeposit } from './watched-deposits.ts';

export type { WatchedDeposit } from './watched-deposits.ts';

export interface WatchDepositActivities {
  /**
   * Null where there is no such deposit.
   * @param as.hasLooked whether the workflow may be notified of the next change: it is notified once, and not
   * again until it has looked
   */
  readDeposit(depositId: string, as: { hasLooked: boolean }): Promise<WatchedDeposit | null>;
  /** Null where there is no such deposit. */
  resolveDepositByHand(depositId: string, decision: VersionedDecision): Promise<DepositVerdict | null>;
}

/** The actor recorded for decisions sent as signals, since anybody with access to Temporal can send one. */
const ACTOR = 'temporal';

/**
 * The activities of `watchDeposit`. Each can be repeated at any point.
 * @param signalSender who sent the workflow's newest signal with such an input; null if Temporal doesn't say
 */
export function createWatchDepositActivities(
  orm: Orm,
  signalSender: (signal: string, isThis: (input: unknown) => boolean) => Promise<string | null>,
): WatchDepositActivities {
  return {
    async readDeposit(depositId, { hasLooked }) {
      const deposit = await readWatchedDeposit(orm, depositId);
      if (deposit !== null && hasLooked)
        await markDepositNotified(orm, { id: depositId, version: deposit.version });
      return deposit;
    },

    async resolveDepositByHand(depositId, decision) {
      if (!Label(500).safeParse(decision.reason).success)
        return { resolved: false, because: 'unreadable_reason' };
      const { outcome, reason, version } = decision;
      const sentBy = await signalSender('resolve', (input) => isSameDecision(input, decision));
      const decided = { depositId, outcome, reason, version, sentBy };
      const verdict = await resolveDeposit({ orm, actor: ACTOR }, decided);
      if (!verdict?.resolved) return verdict;
      await notifyEvents(orm);
      // The workflow reads the row next. A signal about this change could start it again after it ends.
      await markDepositNotified(orm, { id: depositId, version: decision.version + 1 });
      return verdict;
    },
  };
}

/** A signal can contain anything. If it has no version, it is about the one that was shown. */
function isSameDecision(sent: unknown, { outcome, reason, version }: VersionedDecision): boolean {
  const received = (sent ?? {}) as Partial<Record<keyof VersionedDecision, unknown>>;
  return (
    received.outcome === outcome && received.reason === reason && (received.version ?? version) === version
  );
}
