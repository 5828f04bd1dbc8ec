import type { Logger } from 'pino';
import { heard } from '../../cards/network-activities.ts';
import { workOff } from '../../platform/db/leased-queue.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { type Repetition, repeat } from '../../platform/process/repeat.ts';
import type { CardNetwork } from '../card-network.ts';
import { type DueTrueUp, recordTrueUp, takeDueTrueUps } from './true-ups.ts';

const INTERVAL_MS = 2_000;
const AT_ONCE = 8;

/**
 * Has the network follow our ledger. If this process dies after the network has acted, another one asks again
 * with the same token, and gets the same answer.
 */
export function startTruingUp(dependencies: {
  orm: Orm;
  liveNetwork: CardNetwork | null;
  logger: Logger;
}): Repetition {
  const { orm, liveNetwork, logger } = dependencies;

  async function ask(due: DueTrueUp): Promise<void> {
    const { id: trueUpId, direction, token, network_card_id: networkCardId } = due;
    const amountCents = Number(due.amount_cents);
    try {
      const answer = await heard(liveNetwork, (network) =>
        network.trueUp({ token, direction, networkCardId, amountCents }),
      );
      await recordTrueUp(orm, due, answer);
      if (answer?.status === 'refused') {
        logger.warn(
          { trueUpId, reason: answer.reason },
          'the card network refused to move money from or to the account of a card; "operator attention list" has it',
        );
      }
    } catch (error) {
      logger.error(
        { trueUpId, error: describeError(error) },
        "could not move money from or to a card's account; trying again within a minute",
      );
    }
  }

  return repeat("truing up cards' accounts", INTERVAL_MS, logger, async (stopping) => {
    if (liveNetwork === null) return;
    await workOff(stopping, AT_ONCE, (limit) => takeDueTrueUps(orm, { limit }), ask);
  });
}
