import type { Logger } from 'pino';
import { heard } from '../../activities/ask-network.ts';
import { type DueReturn, recordReturn, takeDueReturns } from '../../commands/money-returns/money-returns.ts';
import type { Orm } from '../../db/orm.ts';
import type { CardNetwork } from '../../domain/card-network.ts';
import { describeError } from '../../process/describe-error.ts';
import { type Repetition, repeat } from '../../process/repeat.ts';

const INTERVAL_MS = 2_000;
const AT_ONCE = 8;

/**
 * Has the network take back what was released from blocked cards. If this process dies after the network has acted, another one asks
 * again with the same token, and gets the same answer.
 */
export function startReturning(dependencies: {
  orm: Orm;
  liveNetwork: CardNetwork | null;
  logger: Logger;
}): Repetition {
  const { orm, liveNetwork, logger } = dependencies;

  async function ask(due: DueReturn): Promise<void> {
    const { id: returnId, token, network_card_id: networkCardId } = due;
    try {
      const asked = { token, networkCardId, amountCents: Number(due.amount_cents) };
      const answer = await heard(liveNetwork, (network) => network.returnMoney(asked));
      await recordReturn(orm, due, answer);
      if (answer?.status === 'refused') {
        logger.warn(
          { returnId, reason: answer.reason },
          'the card network refused to take back the money of a blocked card; "operator attention list" has it',
        );
      }
    } catch (error) {
      logger.error(
        { returnId, error: describeError(error) },
        "could not return a blocked card's money; trying again within a minute",
      );
    }
  }

  return repeat("returning blocked cards' money", INTERVAL_MS, logger, async (stopping) => {
    if (liveNetwork === null) return;
    let taken: DueReturn[];
    do {
      taken = await takeDueReturns(orm, { limit: AT_ONCE });
      await Promise.all(taken.map(ask));
    } while (taken.length === AT_ONCE && !stopping.aborted);
  });
}
