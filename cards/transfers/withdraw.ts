import { type RawBuilder, sql } from 'kysely';
import { type AccountClock, accountTime } from '../../domain/account-clock.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { WithdrawalDecision } from '../../domain/decision.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { statementWithPosting } from '../../ledger/apply-posting.ts';
import { readBalance, readCardBalance } from '../../ledger/balances.ts';
import { refuseTooLarge } from '../../ledger/refuse-too-large.ts';
import { readIdTime } from '../../platform/crypto/new-id.ts';
import type { WITHDRAWAL_COLUMNS } from '../../platform/db/columns.ts';
import { readStatement, type Transactor, type Writes } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { type KeyedRequest, lockClaim } from '../../requests/claim.ts';
import type { CommandContext } from '../../requests/command-context.ts';
import {
  type KeyedOutcomeValues,
  outcomeResponse,
  requestOutcome,
  writeRequestOutcome,
} from '../../requests/outcome.ts';
import { type KeyedResponse, requireStored, respondOnce } from '../../requests/respond-once.ts';
import { openRequest, type StoredResponse, storeError } from '../../requests/response.ts';
import type { CardRow } from '../resource.ts';
import { lockTestTerms } from '../terms.ts';
import { withdrawalOutcome } from './end-withdrawal.ts';
import {
  lockClaimAndCard,
  lockPendingWithdrawal,
  lockWithdrawal,
  withdrawalPosting,
} from './pending-withdrawal.ts';
import { WithdrawalRequest, type WithdrawalRow } from './withdrawal-resource.ts';
import { insufficientCardBalance, unknownCardWithdrawal, withdrawalRefusal } from './withdrawal-rules.ts';

// A withdrawal moves money from a card back to the prepaid balance. In live mode, the money is held on the card while the card
// network decides, and end-withdrawal.ts has what follows. In test mode, all of it is one transaction.

/** The request to the network. Its token is the withdrawal's id. */
export interface AskedWithdrawal {
  token: string;
  networkCardId: string;
  amountCents: number;
}

/** What a pending withdrawal's row keeps of the request, so that a repeated one is the same whatever has changed. */
interface KeptWithdrawal {
  networkCardId: string;
}

/**
 * `held`: the network decides next; `asked` is the request to it, or null if an earlier run made the hold. `answered`: the
 * withdrawal is over and its claim has a response, which is included if this run stored it.
 */
type BegunWithdrawal =
  | { state: 'held'; asked: AskedWithdrawal | null }
  | { state: 'answered'; response: StoredResponse | null };

/**
 * Begins a withdrawal in live mode: the pending row and its hold on the card. A refusal becomes the claim's response and leaves
 * nothing else behind. If it runs again for the same claim, it changes nothing and returns the same.
 */
export async function beginWithdrawal(
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<BegunWithdrawal> {
  try {
    return await transaction(orm, async (tx) => {
      const claimed = await lockClaimAndCard(tx, claimId);
      if (claimed === null) return { state: 'answered', response: null };
      const { withdrawalId, card } = claimed;
      const found = await lockWithdrawal(tx, withdrawalId);
      if (found?.status === 'pending') return { state: 'held', asked: null };
      if (claimed.answered) return { state: 'answered', response: null };
      const request = WithdrawalRequest.parse(openRequest(ring, claimId, claimed.request));
      const { totalCents } = await readBalance(tx, card.partner_id, card.mode);
      const withdrawal = draftWithdrawal(withdrawalId, card, request.amount, null);
      const asked = askedFor(withdrawal, card.network_card_id);
      const kept = JSON.stringify({ networkCardId: asked.networkCardId } satisfies KeptWithdrawal);
      const posting = withdrawalPosting(withdrawal, 'pending');
      const { moved } = await holdWithdrawal(tx, posting, { ...withdrawal, claimId, asked: kept });
      if (moved.outcome === 'insufficient_funds') throw await notEnoughOn(tx, card, request.amount);
      mustFitIn(totalCents, request.amount);
      return { state: 'held', asked };
    });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return transaction(orm, async (tx) => {
      if ((await lockClaim(tx, claimId)) === null) return { state: 'answered', response: null };
      if ((await lockPendingWithdrawal(tx, claimId)) !== null) return { state: 'held', asked: null };
      return { state: 'answered', response: await storeError({ tx, ring }, claimId, error) };
    });
  }
}

/** The pending withdrawal. @throws ApiError `invalid_state` */
function draftWithdrawal(
  withdrawalId: string,
  card: CardRow,
  amountCents: number,
  clock: AccountClock,
): WithdrawalRow {
  const refusal = withdrawalRefusal(card.status);
  if (refusal !== null) throw refusal;
  if (card.mode === 'live' && card.network_card_id === null) throw unknownCardWithdrawal();
  return {
    id: withdrawalId,
    partner_id: card.partner_id,
    mode: card.mode,
    card_id: card.id,
    status: 'pending',
    failure_code: null,
    amount_cents: String(amountCents),
    card_balance_cents: null,
    overdue_since: null,
    created_at: accountTime(clock, readIdTime(withdrawalId)).toISOString(),
    completed_at: null,
  };
}

function askedFor(
  withdrawal: Pick<WithdrawalRow, 'id' | 'amount_cents'>,
  networkCardId: string | null,
): AskedWithdrawal {
  if (networkCardId === null)
    throw new Error(`${withdrawal.id} is from a card that the network does not know`);
  return { token: withdrawal.id, networkCardId, amountCents: Number(withdrawal.amount_cents) };
}

/** Comes after the card's balance: what isn't there can't be too much. @throws ApiError `validation_failed` */
function mustFitIn(prepaidCents: number, amountCents: number): void {
  if (BigInt(prepaidCents) + BigInt(amountCents) <= BigInt(MAX_AMOUNT_CENTS)) return;
  throw ApiError.ofField(
    'amount',
    `amount would take your balance above the maximum of ${MAX_AMOUNT_CENTS} cents`,
  );
}

/** The ledger has locked the card's balance, so this is what it decided on. */
async function notEnoughOn(tx: Transactor, card: CardRow, amountCents: number): Promise<ApiError> {
  const { balanceCents, heldCents } = await readCardBalance(
    tx,
    { partnerId: card.partner_id, mode: card.mode },
    card.id,
  );
  return insufficientCardBalance(amountCents, balanceCents - heldCents);
}

/** A column of WITHDRAWAL_COLUMNS that is missing here is a type error. */
const newWithdrawal = (withdrawal: WithdrawalRow) =>
  ({
    id: withdrawal.id,
    partner_id: withdrawal.partner_id,
    mode: withdrawal.mode,
    card_id: withdrawal.card_id,
    status: withdrawal.status,
    failure_code: withdrawal.failure_code,
    amount_cents: withdrawal.amount_cents,
    card_balance_cents: withdrawal.card_balance_cents,
    overdue_since: withdrawal.overdue_since,
    created_at: withdrawal.created_at,
    completed_at: withdrawal.completed_at,
  }) satisfies Record<(typeof WITHDRAWAL_COLUMNS)[number], unknown>;

const insertWithdrawal = (
  db: Writes,
  withdrawal: WithdrawalRow,
  pending: { claim_id: string; asked: RawBuilder<KeptWithdrawal> } | null,
) =>
  db
    .insertInto('withdrawal')
    .values({ ...newWithdrawal(withdrawal), ...pending })
    .returning(['partner_id', 'mode']);

const holdWithdrawal = statementWithPosting(
  (db, values: WithdrawalRow & { claimId: string; asked: string }, ledger) => {
    const asked = sql<KeptWithdrawal>`${values.asked}::jsonb`;
    return sql`
      WITH done AS (${insertWithdrawal(db, values, { claim_id: values.claimId, asked })})
      SELECT ${ledger.answer} FROM ${ledger.call}`;
  },
);

/** What a pending withdrawal asks the network for, and what an operator has decided meanwhile; null if it is not pending. */
export async function readPendingWithdrawal(
  { orm }: CommandContext,
  claimId: string,
): Promise<{ asked: AskedWithdrawal; decision: WithdrawalDecision | null } | null> {
  const [row] = await pendingWithdrawal(orm.em.fork(), { claimId });
  if (row === undefined) return null;
  return { asked: askedFor(row, row.asked?.networkCardId ?? null), decision: row.binding };
}

const pendingWithdrawal = readStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('withdrawal')
      .select(['id', 'amount_cents', 'asked'])
      .select(
        sql<WithdrawalDecision | null>`CASE WHEN NOT decision ? 'refused' THEN decision END`.as('binding'),
      )
      .where('claim_id', '=', claimId)
      .where('status', '=', 'pending'),
  { acrossTenants: 'id' },
);

/**
 * Withdraws money from a test card in one transaction: test mode's network always says yes, so there is nothing to wait for.
 * @throws ApiError `card_not_found`, `idempotency_conflict`, `validation_failed` (a sum past the largest integer).
 * Other refusals are returned as the stored response.
 */
export function withdrawInTestMode(
  context: CommandContext,
  request: KeyedRequest<'withdraw_from_card'>,
  { amount }: WithdrawalRequest,
): Promise<KeyedResponse> {
  const { ring } = context;
  return respondOnce(context, request, async (tx) => {
    const locked = await lockTestTerms({ tx, ring }, request, { counts: false });
    if ('replayed' in locked) return locked;
    const {
      card,
      balance,
      terms: { clock },
    } = locked;
    const { totalCents } = await readBalance(tx, card.partner_id, card.mode);
    const draft = draftWithdrawal(request.resourceId, card, amount, clock);
    const balanceCents = balance.balanceCents - amount;
    const withdrawal: WithdrawalRow = {
      ...draft,
      status: 'succeeded',
      card_balance_cents: String(balanceCents),
      completed_at: accountTime(clock).toISOString(),
    };
    // Checked before anything is presented: a response never has a balance below zero.
    if (balanceCents < balance.heldCents) {
      throw insufficientCardBalance(amount, balance.balanceCents - balance.heldCents);
    }
    mustFitIn(totalCents, amount);
    const outcome = withdrawalOutcome(withdrawal, card, { balanceCents, heldCents: balance.heldCents });
    const values = { ...withdrawal, ...requestOutcome(ring, request, outcome, clock) };
    const posting = withdrawalPosting(withdrawal, 'single');
    const { moved, wrote } = await moveWithdrawal(tx, posting, values).catch(refuseTooLarge);
    // The card's lock is held, so its balance is what was checked.
    if (moved.outcome !== 'applied') throw new Error(`the withdrawal ${withdrawal.id} is ${moved.outcome}`);
    requireStored(wrote.is_stored);
    return { replayed: false, response: outcomeResponse(outcome) };
  });
}

const moveWithdrawal = statementWithPosting((db, values: WithdrawalRow & KeyedOutcomeValues, ledger) => {
  const { ctes, isStored } = writeRequestOutcome(values, true);
  return sql<{ is_stored: boolean }>`
    WITH done AS (${insertWithdrawal(db, values, null)}), ${ctes}
    SELECT ${ledger.answer}, ${isStored} AS is_stored FROM ${ledger.call}`;
});
