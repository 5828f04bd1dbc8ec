import { sql } from 'kysely';
import type { CardStatus } from '../domain/card-status.ts';
import { STATUS_CHANGES, type StatusChangeOperation, statusChangeRefusal } from '../domain/card-status.ts';
import { statementWithPosting } from '../ledger/apply-posting.ts';
import { LedgerRejected } from '../ledger/ledger-error.ts';
import { type Cte, cte, type Writes, withCtes, writeStatement } from '../platform/db/sql.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import type { AccountColumns } from '../requests/event.ts';
import { endRequest, type KeyedOutcomeValues, outcomeResponse, requestOutcome } from '../requests/outcome.ts';
import { type KeyedResponse, requireStored, respondOnce } from '../requests/respond-once.ts';
import { releaseNotPossible } from './block.ts';
import { releasePosting } from './release-balance.ts';
import { changeOutcome } from './row.ts';
import { lockTestTerms } from './terms.ts';
import { uncountBlocked } from './usage.ts';

/**
 * Freezes, unfreezes or blocks a test card. The lock on the card's row puts its changes in order.
 * @throws ApiError `card_not_found`, `idempotency_conflict`, and, without an Idempotency-Key,
 * `invalid_state`. With a key, the refusal is a stored response.
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
    const outcome = changeOutcome(type, card, { balanceCents: balanceCents - releasedCents, heldCents });
    const ended = requestOutcome(ring, request, outcome, locked.terms.clock);
    const values = { ...ended, cardId: card.id, status: to };
    if (releasedCents > 0) {
      const release = releasePosting(card, releasedCents);
      const { moved, wrote } = await blockAndRelease(tx, release, values).catch((error: unknown) => {
        if (!(error instanceof LedgerRejected) || error.reason !== 'balance_out_of_range') throw error;
        throw releaseNotPossible();
      });
      if (moved.outcome !== 'applied') throw new Error(`the release of ${card.id} is ${moved.outcome}`);
      requireStored(wrote.is_stored);
    } else {
      const [wrote] = await (to === 'blocked' ? block : change)(tx, values);
      requireStored(wrote?.is_stored === true);
    }
    return { replayed: false, response: outcomeResponse(outcome) };
  });
}

type Change = KeyedOutcomeValues & { cardId: string; status: CardStatus };

/** The card's new status, with what follows from it in the same statement. */
function changeAndEnd(db: Writes, values: Change) {
  const { partnerId, mode, cardId, status } = values;
  const changed = cte(
    'changed',
    db
      .updateTable('card')
      .set({ status })
      .where('id', '=', cardId)
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .returning(['partner_id', 'mode']),
  );
  const { ctes, isStored } = endRequest(changed, values);
  return { changed, ctes: [changed, ...ctes], isStored };
}

const uncount = (changed: Cte<AccountColumns>) => cte('uncounted', uncountBlocked(changed.rows));

const change = writeStatement((db, values: Change) => {
  const { ctes, isStored } = changeAndEnd(db, values);
  return sql<{ is_stored: boolean }>`${withCtes(ctes)} SELECT ${isStored} AS is_stored`;
});

const block = writeStatement((db, values: Change) => {
  const { changed, ctes, isStored } = changeAndEnd(db, values);
  return sql<{
    is_stored: boolean;
  }>`${withCtes([...ctes, uncount(changed)])} SELECT ${isStored} AS is_stored`;
});

const blockAndRelease = statementWithPosting((db, values: Change, ledger) => {
  const { changed, ctes, isStored } = changeAndEnd(db, values);
  return sql<{ is_stored: boolean }>`
    ${withCtes([...ctes, uncount(changed)])} SELECT ${ledger.answer}, ${isStored} AS is_stored
      FROM ${ledger.call}`;
});
