import { sql } from 'kysely';
import type { CardStatus } from '../domain/card-status.ts';
import { STATUS_CHANGES, type StatusChangeOperation, statusChangeRefusal } from '../domain/card-status.ts';
import { statementWithPosting } from '../ledger/apply-posting.ts';
import { LedgerRejected } from '../ledger/ledger-error.ts';
import { type Writes, writeStatement } from '../platform/db/sql.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import {
  forRequests,
  type KeyedOutcomeValues,
  type Outcome,
  outcomeResponse,
  requestOutcome,
  writeRequestOutcome,
} from '../requests/outcome.ts';
import { type KeyedResponse, requireStored, respondOnce } from '../requests/respond-once.ts';
import { releaseNotPossible } from './block.ts';
import { releasePosting } from './release-balance.ts';
import { presentCard } from './resource.ts';
import { lockTestTerms } from './terms.ts';

/**
 * Freezes, unfreezes or blocks a test card. The lock on the card's row puts its changes in order.
 * @throws ApiError `card_not_found`, `idempotency_conflict`, and, without an Idempotency-Key, `invalid_state`. With a key,
 * the refusal is a stored response.
 */
export function changeStatusInTestMode(
  context: CommandContext,
  request: KeyedRequest & { operation: StatusChangeOperation },
): Promise<KeyedResponse> {
  const { ring } = context;
  const { operation } = request;
  const { to, event: type } = STATUS_CHANGES[operation];
  return respondOnce(context, request, async (tx) => {
    const locked = await lockTestTerms({ tx, ring }, request, { counts: to === 'blocked' });
    if ('replayed' in locked) return locked;
    const refusal = statusChangeRefusal(locked.card.status, operation);
    if (refusal !== null) throw refusal;

    const card = { ...locked.card, status: to };
    const { balanceCents, heldCents } = locked.balance;
    const releasedCents = to === 'blocked' ? balanceCents - heldCents : 0;
    const resource = presentCard(card, { balanceCents: balanceCents - releasedCents, heldCents });
    const outcome: Outcome = {
      type,
      mode: 'test',
      cardId: card.id,
      data: { card: resource },
      response: { status: 200, resource },
    };
    const values = { ...requestOutcome(ring, request, outcome, locked.terms.clock), status: to };
    if (releasedCents > 0) {
      const release = releasePosting(card, releasedCents);
      const { moved, wrote } = await blockAndRelease(request)(tx, release, values).catch((error: unknown) => {
        if (!(error instanceof LedgerRejected) || error.reason !== 'balance_out_of_range') throw error;
        throw releaseNotPossible();
      });
      if (moved.outcome !== 'applied') throw new Error(`the release of ${card.id} is ${moved.outcome}`);
      requireStored(wrote.is_stored);
    } else {
      const [wrote] = await (to === 'blocked' ? block : change)(request)(tx, values);
      requireStored(wrote?.is_stored === true);
    }
    return { replayed: false, response: outcomeResponse(outcome) };
  });
}

type Change = KeyedOutcomeValues & { status: CardStatus };

const updateCard = (db: Writes, { partnerId, mode, eventCardId: cardId, status }: Change) =>
  db
    .updateTable('card')
    .set({ status })
    .where('id', '=', cardId)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .returning(['partner_id', 'mode']);

const change = forRequests((isKeyed) =>
  writeStatement((db, values: Change) => {
    const { ctes, isStored } = writeRequestOutcome(values, isKeyed);
    return sql<{ is_stored: boolean }>`
      WITH done AS (${updateCard(db, values)}), ${ctes} SELECT ${isStored} AS is_stored`;
  }),
);

const UNCOUNT_OPEN_CARD = sql`
  UPDATE account_usage u SET open_cards = u.open_cards - 1
  FROM done WHERE u.partner_id = done.partner_id AND u.mode = done.mode`;

const block = forRequests((isKeyed) =>
  writeStatement((db, values: Change) => {
    const { ctes, isStored } = writeRequestOutcome(values, isKeyed);
    return sql<{ is_stored: boolean }>`
      WITH done AS (${updateCard(db, values)}), uncounted AS (${UNCOUNT_OPEN_CARD}), ${ctes}
      SELECT ${isStored} AS is_stored`;
  }),
);

const blockAndRelease = forRequests((isKeyed) =>
  statementWithPosting((db, values: Change, ledger) => {
    const { ctes, isStored } = writeRequestOutcome(values, isKeyed);
    return sql<{ is_stored: boolean }>`
      WITH done AS (${updateCard(db, values)}), uncounted AS (${UNCOUNT_OPEN_CARD}), ${ctes}
      SELECT ${ledger.answer}, ${isStored} AS is_stored FROM ${ledger.call}`;
  }),
);
