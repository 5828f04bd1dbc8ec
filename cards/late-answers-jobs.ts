import type { Logger } from 'pino';
import type {
  CardNetwork,
  LookUpAnswer,
  TopUpLookUpAnswer,
  WithdrawalLookUpAnswer,
} from '../issuers/card-network.ts';
import { isLasting } from '../platform/db/is-retryable.ts';
import { workOff } from '../platform/db/leased-queue.ts';
import { notifyEvents } from '../platform/db/notifications.ts';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { type Repetition, repeat } from '../platform/process/repeat.ts';
import type { LateAnswer, LateKind } from './late-answer-rules.ts';
import { recordLateAnswer, takeLateAnswers } from './late-answers.ts';
import { refuseBooking } from './late-decisions.ts';
import { heard } from './network-activities.ts';
import { bookTopUp } from './transfers/book-top-up.ts';
import { bookWithdrawal } from './transfers/book-withdrawal.ts';

const INTERVAL_MS = 2_000;
const AT_ONCE = 8;

/**
 * Looks up operations that have ended and about which the network may still say something else, and books top-ups and
 * withdrawals that an operator wants booked. A callback alone is only a hint, so nothing counts until a look-up has confirmed it.
 */
export function startLateAnswers(dependencies: {
  orm: Orm;
  liveNetwork: CardNetwork | null;
  logger: Logger;
}): Repetition {
  const { orm, liveNetwork, logger } = dependencies;

  async function hear({ id, kind }: { id: string; kind: LateKind }): Promise<void> {
    try {
      const { answer, networkCardId } = await lookUp(liveNetwork, kind, id);
      const next = await recordLateAnswer(orm, id, answer, networkCardId);
      if (next === 'contradicts') logger.warn({ id, answer }, CONTRADICTS);
      if (next === 'booked' && kind === 'topup' && (await bookTopUp(orm, id))) {
        logger.info({ id }, 'booked a top-up late');
        await notifyEvents(orm);
      }
      if (next === 'booked' && kind === 'withdrawal' && (await bookWithdrawal(orm, id))) {
        logger.info({ id }, 'booked a withdrawal late');
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

type Said = LookUpAnswer | TopUpLookUpAnswer | WithdrawalLookUpAnswer;

async function lookUp(
  network: CardNetwork | null,
  kind: LateKind,
  id: string,
): Promise<{ answer: LateAnswer; networkCardId: string | null }> {
  const said = await heard(network, async (asked): Promise<Said> => {
    if (kind === 'card') return asked.lookUpIssuance(id);
    return kind === 'topup' ? asked.lookUpTopUp(id) : asked.lookUpWithdrawal(id);
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
