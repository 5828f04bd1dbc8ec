import type { Logger } from 'pino';
import { TRANSFERS } from '../domain/transfer.ts';
import type { CardNetwork, LookUpAnswer, TransferLookUpAnswer } from '../issuers/card-network.ts';
import { isLasting } from '../platform/db/is-retryable.ts';
import { workOff } from '../platform/db/leased-queue.ts';
import { notifyEvents } from '../platform/db/notifications.ts';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { type Repetition, repeat } from '../platform/process/repeat.ts';
import { recordLateAnswer, refuseBooking, takeLateAnswers } from './late-answers.ts';
import type { LateAnswer, LateKind } from './late-answers-tables.ts';
import { heard, toEvidence } from './network-activities.ts';
import { identifyCard, takeUnconfirmedCards } from './network-card.ts';
import { bookTransfer } from './transfers/book.ts';

const INTERVAL_MS = 2_000;
const AT_ONCE = 8;
/** The pause between two look-ups of one card. */
const PAUSE_MS = 600_000;

interface Dependencies {
  orm: Orm;
  liveNetwork: CardNetwork | null;
  logger: Logger;
}

/**
 * Looks up the digits of cards whose network id an operator gave, until the network has confirmed the id or
 * named another.
 */
export function startIdentifying({ orm, liveNetwork, logger }: Dependencies): Repetition {
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
    await Promise.all((await takeUnconfirmedCards(orm, AT_ONCE, PAUSE_MS)).map(lookUp));
  });
}

/**
 * Looks up operations that have ended and about which the network may still say something else, and books
 * transfers that an operator wants booked. A callback alone is only a hint, so nothing counts until a look-up
 * has confirmed it.
 */
export function startLateAnswers({ orm, liveNetwork, logger }: Dependencies): Repetition {
  async function hear({ id, kind }: { id: string; kind: LateKind }): Promise<void> {
    try {
      const { answer, networkCardId } = await lookUp(liveNetwork, kind, id);
      const next = await recordLateAnswer(orm, id, answer, networkCardId);
      if (next === 'contradicts') logger.warn({ id, answer }, CONTRADICTS);
      if (next === 'booked' && kind !== 'card' && (await bookTransfer(orm, id))) {
        logger.info({ id }, `booked a ${TRANSFERS[kind].noun} late`);
        await notifyEvents(orm);
      }
    } catch (error) {
      logger.error(
        { id, error: describeError(error) },
        'could not record what the network says; trying again',
      );
      if (isLasting(error)) await refuseBooking(orm, { id, why: 'not_recordable' });
    }
  }

  return repeat('looking up operations that have ended', INTERVAL_MS, logger, (stopping) =>
    workOff(stopping, AT_ONCE, (limit) => takeLateAnswers(orm, { limit }), hear),
  );
}

const CONTRADICTS =
  'the card network contradicts our record of an operation that has ended; "operator attention list" has it, with what to do';

type Said = LookUpAnswer | TransferLookUpAnswer;

async function lookUp(
  network: CardNetwork | null,
  kind: LateKind,
  id: string,
): Promise<{ answer: LateAnswer; networkCardId: string | null }> {
  const said = await heard(network, async (asked): Promise<Said> => {
    if (kind === 'card') return asked.lookUpIssuance(id);
    return asked.lookUpTransfer({ direction: kind, token: id });
  });
  switch (said?.status) {
    case 'issued':
      return { answer: 'yes', networkCardId: said.networkCardId };
    case 'succeeded':
      return { answer: 'yes', networkCardId: null };
    case 'declined':
    case 'failed':
      return { answer: 'no', networkCardId: null };
    case 'unknown':
      return { answer: 'unknown', networkCardId: null };
    case 'accepted':
    case undefined:
      return { answer: 'none', networkCardId: null };
  }
}
