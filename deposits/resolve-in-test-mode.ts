import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import type { DepositDecision } from '../domain/deposit.ts';
import type { Tenant } from '../domain/mode.ts';
import { DEPOSIT_COLUMNS, of, receivedBy, selectPayments } from '../platform/db/columns.ts';
import { tenantStatement, writeStatement } from '../platform/db/sql.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { findReplay, type KeyedResponse, respondOnce, respondWith } from '../requests/respond-once.ts';
import { lockDeposits, writeDepositEvents } from './deposit-state.ts';
import { creditReview } from './resolve.ts';
import { presentDeposit } from './resource.ts';

/**
 * Settles what is in review of a test deposit, as an operator does for a live one (docs/partners/testing.md).
 * @throws ApiError `deposit_not_found`, `invalid_state`, `idempotency_conflict`
 */
export function resolveTestDeposit(
  context: CommandContext,
  request: KeyedRequest<'resolve_test_deposit'>,
  depositId: string,
  outcome: DepositDecision['outcome'],
): Promise<KeyedResponse> {
  const { ring } = context;
  return respondOnce(context, request, async (tx) => {
    const [known] = await readOne(tx, request, { depositId });
    if (known === undefined) throw new ApiError('deposit_not_found');
    const [deposit] = await lockDeposits(tx, [depositId], 'wait');
    if (deposit === undefined) throw new ApiError('deposit_not_found');
    const replay = await findReplay({ tx, ring }, request);
    if (replay !== null) return replay;
    if (!deposit.statuses.includes('in_review')) {
      throw new ApiError('invalid_state', {
        message: `Nothing of this deposit is in review: it is ${deposit.status}. GET /funding/deposits/${depositId} shows it.`,
      });
    }
    const creditedCents = outcome === 'credited' ? await creditReview(tx, deposit) : 0;
    if (typeof creditedCents === 'string') {
      throw new ApiError('invalid_state', {
        message:
          'What arrived can not be credited: the balance would exceed its maximum. Resolve it as returned.',
      });
    }
    const actor = request.apiKeyId ?? 'partner';
    await settle(tx, { depositId, outcome, creditedCents: String(creditedCents), actor });
    const [row] = await readOne(tx, request, { depositId });
    if (row === undefined) throw new Error(`${depositId} is gone while it was locked`);
    if (creditedCents > 0)
      await writeDepositEvents(tx, [{ type: 'deposit.confirmed', row, clock: deposit.clock }]);
    return respondWith({ tx, ring }, request, 200, presentDeposit(row));
  });
}

const readOne = tenantStatement((db, { partnerId, mode, depositId }: Tenant & { depositId: string }) =>
  db
    .selectFrom('deposit as d')
    .select(of('d', DEPOSIT_COLUMNS))
    .select([receivedBy('d').as('received_micro_usdt'), selectPayments('d').as('payments')])
    .where('d.partner_id', '=', partnerId)
    .where('d.mode', '=', mode)
    .where('d.id', '=', depositId),
);

type Decided = { depositId: string; outcome: string; creditedCents: string; actor: string };

const settle = writeStatement(
  (_, { depositId, outcome, creditedCents, actor }: Decided) => sql`
    SELECT settle_test_deposit(${depositId}, ${outcome}, ${creditedCents}, 'the partner resolved it in test mode', ${actor})`,
);
