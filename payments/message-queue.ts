import type { Orm } from '../platform/db/orm.ts';
import { transaction } from '../platform/db/transaction.ts';
import { coalesce } from '../platform/process/coalesce.ts';
import { asAccount, asService } from '../platform/process/work-context.ts';
import { type MessageOutcome, type MessageToTake, takeMessages } from './take-messages.ts';

const MAX_TOGETHER = 100;
/** If more transactions run at once on one server, each takes that much longer. */
const MAX_UNDER_WAY = 4;
/** How long others may have to wait for an account they share a transaction with. */
const MAX_LOCK_WAIT_MS = 250;

export interface MessageQueue {
  /** Takes a message of the simulated network in a transaction that others may share. */
  take(message: MessageToTake): Promise<MessageOutcome>;
}

/**
 * Messages of one account wait for each other anyway, at the row of its prepaid balance, and a transaction
 * with many of them costs little more than one with one. So each account has one transaction under way at a
 * time, and few are under way altogether; what arrives meanwhile goes together into the next ones. What
 * fails, or meets a lock that is held for long, is tried again without the others
 * (docs/decisions/settlements-in-batches.md).
 * @param eventsWritten is called after each commit
 */
export function createMessageQueue(orm: Orm, eventsWritten: () => void): MessageQueue {
  const take = coalesce<MessageToTake, MessageOutcome>({
    maxTogether: MAX_TOGETHER,
    maxUnderWay: MAX_UNDER_WAY,
    laneOf: accountKey,
    async run(messages) {
      try {
        return await asService('simulated network', () => takeTogether(messages, MAX_LOCK_WAIT_MS));
      } catch {
        // The error may come from one account, so take each account's messages apart.
        return [...Map.groupBy(messages, accountKey).values()].flatMap(takeApart);
      }
    },
  });

  async function takeTogether(
    messages: readonly MessageToTake[],
    lockWaitMs: number | null,
  ): Promise<MessageOutcome[]> {
    const outcomes = await transaction(orm, (tx) => takeMessages(tx, messages, lockWaitMs));
    eventsWritten();
    return outcomes;
  }

  /**
   * Takes what belongs to one account, in the account's own turns, and waits for locks as long as a session
   * may. If that fails, takes each one alone, so that only the ones that cause an error get it.
   */
  function takeApart(messages: readonly MessageToTake[]): Promise<MessageOutcome>[] {
    return asAccount(messages[0] as MessageToTake, () => {
      const together =
        messages.length > 1 ? takeTogether(messages, null).catch(() => null) : Promise.resolve(null);
      return messages.map(async (message, index) => {
        const outcome = (await together)?.[index] ?? (await takeTogether([message], null))[0];
        return outcome as MessageOutcome;
      });
    });
  }

  return { take };
}

const accountKey = ({ mode, partnerId }: MessageToTake): string => `${mode}/${partnerId}`;
