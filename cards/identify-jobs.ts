import type { Logger } from 'pino';
import type { CardNetwork } from '../issuers/card-network.ts';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { type Repetition, repeat } from '../platform/process/repeat.ts';
import { heard, toEvidence } from './network-activities.ts';
import { identifyCard, takeUnidentifiedCards } from './network-card.ts';

const INTERVAL_MS = 2_000;
const AT_ONCE = 8;
/** The pause between two look-ups of one card. */
const PAUSE_MS = 600_000;

/**
 * Looks up the network's id and digits of cards that an operator's decision made active, until they are known. Without its
 * id, a card can't be frozen, blocked or topped up.
 */
export function startIdentifying(dependencies: {
  orm: Orm;
  liveNetwork: CardNetwork | null;
  logger: Logger;
}): Repetition {
  const { orm, liveNetwork, logger } = dependencies;

  async function lookUp(cardId: string): Promise<void> {
    try {
      const answer = await heard(liveNetwork, (network) => network.lookUpIssuance(cardId));
      if (await identifyCard(orm, cardId, toEvidence(answer)))
        logger.info({ cardId }, "learned a card's id at the network");
    } catch (error) {
      logger.error({ cardId, error: describeError(error) }, 'could not look up a card; trying again later');
    }
  }

  return repeat('looking up cards at the network', INTERVAL_MS, logger, async () => {
    await Promise.all((await takeUnidentifiedCards(orm, AT_ONCE, PAUSE_MS)).map(lookUp));
  });
}
