import { sql } from 'kysely';
import { countedDay } from '../../accounts/clock.ts';
import { checkLimits } from '../../accounts/limits-rules.ts';
import { accountTime } from '../../domain/account-clock.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { TransferDecision } from '../../domain/decision.ts';
import { quoteFunding } from '../../domain/fees.ts';
import { isId } from '../../domain/ids.ts';
import { TRANSFERS, type TransferDirection } from '../../domain/transfer.ts';
import type { TransferAsked } from '../../issuers/card-network.ts';
import { statementWithPosting } from '../../ledger/apply-posting.ts';
import { refuseTooLarge } from '../../ledger/refuse-too-large.ts';
import { readIdTime } from '../../platform/crypto/new-id.ts';
import { CARD_COLUMNS, of, ownColumns, TRANSFER_COLUMNS } from '../../platform/db/columns.ts';
import { cte, readStatement, withCtes, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { type KeyedRequest, lockClaim, lockUsageAndClaim } from '../../requests/claim.ts';
import type { CommandContext } from '../../requests/command-context.ts';
import {
  endRequest,
  type KeyedOutcomeValues,
  outcomeResponse,
  requestOutcome,
} from '../../requests/outcome.ts';
import { type KeyedResponse, requireStored, respondOnce } from '../../requests/respond-once.ts';
import { openRequest, storeError } from '../../requests/response.ts';
import { type BegunFunding, fundingPosting, type InsertedFunding, requireFunds } from '../funding-posting.ts';
import { neverIssued } from '../lock-card.ts';
import { hasLostNetworkId } from '../network-card.ts';
import type { CardRow } from '../resource.ts';
import { type ClaimedTermsColumns, type FundingTerms, fundingTerms, lockTestTerms } from '../terms.ts';
import { countLoad, type Load } from '../usage.ts';
import { TopUpRequest, type TransferRequest, type TransferRow } from './resource.ts';
import {
  balanceAfter,
  lockPendingTransfer,
  succeededTransfer,
  transferFunding,
  transferOutcome,
} from './row.ts';
import { insufficientCardBalance, requireRoom, transferRefusal, unknownCard } from './rules.ts';

// A transfer moves money between the prepaid balance and a card. In live mode, the money is held where it
// comes from while the card network decides, and end.ts has what follows. In test mode, all of it is one
// transaction.

/**
 * What a pending transfer's row keeps of the request, so that a repeated one is the same whatever has
 * changed.
 */
interface KeptTransfer {
  networkCardId: string;
}

/**
 * Begins a transfer in live mode: the pending row and its hold. A refusal becomes the claim's response and
 * leaves nothing else behind. If it runs again for the same claim, it changes nothing and returns the same.
 */
export async function beginTransfer(
  { orm, ring }: CommandContext,
  claimId: string,
  direction: TransferDirection,
): Promise<BegunFunding<TransferAsked>> {
  try {
    return await transaction(orm, async (tx) => {
      const [claimed] = await lockClaimedTerms(tx, { claimId });
      if (claimed === undefined) return { state: 'answered', response: null };
      const { resource_id: transferId, card_id: cardId, partner_id: partnerId, mode } = claimed;
      // Anybody with access to Temporal can start a workflow with another operation's claim.
      const { idPrefix, noun } = TRANSFERS[direction];
      if (!isId(idPrefix, transferId)) throw new Error(`${transferId} is not a ${noun}`);
      if (claimed.is_pending) return { state: 'held', asked: null };
      if (claimed.answered) return { state: 'answered', response: null };
      if (cardId === null) throw new Error(`the claim of ${transferId} names no card`);
      if (claimed.id === null) throw neverIssued();
      const transfer = draftTransfer(direction, transferId, claimed, {
        ...fundingTerms(partnerId, mode, claimed),
        // The requests of both directions have the same shape.
        request: TopUpRequest.parse(openRequest(ring, claimId, claimed.request)),
        cardCents: Number(claimed.card_cents),
        arrivingCents: BigInt(claimed.arriving_cents),
      });
      const asked = askedFor(transfer, claimed.network_card_id);
      const kept: KeptTransfer = { networkCardId: asked.networkCardId };
      const values = {
        partnerId,
        mode,
        row: JSON.stringify(transfer),
        pendingClaimId: claimId,
        asked: JSON.stringify(kept),
      };
      const funding = transferFunding(transfer);
      const held = await holdTransfer(tx, fundingPosting(funding, 'pending'), values).catch(refuseTooLarge);
      await requireFunds(tx, funding, held.moved);
      // It comes after the card's balance: what isn't there can't be too much.
      if (direction === 'withdrawal')
        requireRoom(direction, asked.amountCents, Number(claimed.prepaid_cents));
      return { state: 'held', asked };
    });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return transaction(orm, async (tx) => {
      const lockAgain = direction === 'topup' ? lockUsageAndClaim : lockClaim;
      if ((await lockAgain(tx, claimId)) === null) return { state: 'answered', response: null };
      // Another run of the same claim may have got further in the meantime, and its result stands.
      if ((await lockPendingTransfer(tx, claimId)) !== null) return { state: 'held', asked: null };
      return { state: 'answered', response: await storeError({ tx, ring }, claimId, error) };
    });
  }
}

// Without the card's columns, there is no such card.
const lockClaimedTerms = writeStatement(
  (_, { claimId }: { claimId: string }) => sql<ClaimedTermsColumns & (CardRow | { id: null })>`
    SELECT ${sql.raw(of('(f.card)', CARD_COLUMNS).join(', '))}, f.partner_id, f.mode, f.request, f.answered,
      f.resource_id, f.is_pending, f.card_id, f.card_cents, f.arriving_cents, f.prepaid_cents,
      f.fee_plan, f.limits, f.open_cards, f.loaded_today_cents
    FROM lock_funding_terms(${claimId}) f`,
);

/** The state that a transfer is decided on, in addition to the card's row. */
interface TransferTerms extends FundingTerms {
  request: TransferRequest;
  /** The card's balance. */
  cardCents: number;
  /** What its pending top-ups would add. */
  arrivingCents: bigint;
}

/**
 * The pending transfer on these terms. Everything that can be refused without the ledger is refused here, so
 * limits come before the balance (docs/partners/money-fees-and-limits.md).
 * @throws ApiError `validation_failed` (a top-up's amount and fees, or the card's balance, past the largest
 * integer), `invalid_state`, `limit_exceeded`.
 */
function draftTransfer(
  direction: TransferDirection,
  transferId: string,
  card: CardRow,
  terms: TransferTerms,
): TransferRow {
  const { amount } = terms.request;
  const fees = direction === 'topup' ? quoteFunding(terms.feePlan, 'card_topup', amount).fees : [];
  if (direction === 'topup') requireRoom(direction, amount, BigInt(terms.cardCents) + terms.arrivingCents);
  const refusal = transferRefusal(direction, card.status);
  if (refusal !== null) throw refusal;
  if (hasLostNetworkId(card)) throw unknownCard();
  if (direction === 'topup') checkLimits(terms.limits, terms.usage, { amountCents: amount, newCards: 0 });
  return {
    id: transferId,
    partner_id: terms.partnerId,
    mode: terms.mode,
    card_id: card.id,
    direction,
    status: 'pending',
    failure_code: null,
    amount_cents: String(amount),
    fees,
    card_balance_cents: null,
    overdue_since: null,
    created_at: accountTime(terms.clock, readIdTime(transferId)).toISOString(),
    completed_at: null,
  };
}

function askedFor(
  transfer: Pick<TransferRow, 'id' | 'direction' | 'amount_cents'>,
  networkCardId: string | null,
): TransferAsked {
  const { id: token, direction } = transfer;
  if (networkCardId === null) throw new Error(`${token} is for a card that the network does not know`);
  return { token, direction, networkCardId, amountCents: Number(transfer.amount_cents) };
}

const OWN_COLUMNS = ownColumns(TRANSFER_COLUMNS);

/** Inserts a transfer and returns what is counted of it: nothing of a withdrawal. */
const insertTransfer = (transfer: InsertedFunding) => sql<Load>`
  INSERT INTO card_transfer (partner_id, mode, ${OWN_COLUMNS}, claim_id, asked, counted_on)
  SELECT ${transfer.partnerId}, ${transfer.mode}, ${OWN_COLUMNS}, ${transfer.pendingClaimId},
    ${transfer.asked}::jsonb,
    CASE direction WHEN 'topup' THEN ${countedDay(transfer.partnerId, transfer.mode)} END
  FROM json_populate_record(NULL::card_transfer, ${transfer.row})
  RETURNING partner_id, mode, amount_cents AS cents, counted_on`;

const holdTransfer = statementWithPosting((_, transfer: InsertedFunding, ledger) => {
  const made = cte('made', insertTransfer(transfer));
  return sql`${withCtes([made, countLoad(made, 0)])} SELECT ${ledger.answer} FROM ${ledger.call}`;
});

/**
 * What a pending transfer asks the network for, whether that is another card by now, and what an operator has
 * decided meanwhile; null if it is not pending, or the claim is of something else.
 */
export async function readPendingTransfer(
  { orm }: CommandContext,
  claimId: string,
  direction: TransferDirection,
): Promise<{ asked: TransferAsked; isOthers: boolean; decision: TransferDecision | null } | null> {
  const [row] = await pendingTransfer(orm.em.fork(), { claimId, direction });
  if (row === undefined) return null;
  const asked = askedFor(row, row.asked?.networkCardId ?? null);
  return { asked, isOthers: row.is_others, decision: row.binding };
}

const pendingTransfer = readStatement(
  (db, { claimId, direction }: { claimId: string; direction: TransferDirection }) =>
    db
      .selectFrom('card_transfer')
      .select(['id', 'direction', 'amount_cents', 'asked'])
      .select(
        sql<TransferDecision | null>`CASE WHEN NOT decision ? 'refused' THEN decision END`.as('binding'),
      )
      .select(
        sql<boolean>`EXISTS (SELECT FROM card c WHERE c.mode = 'live' AND c.id <> card_transfer.card_id
          AND c.network_card_id = card_transfer.asked ->> 'networkCardId')`.as('is_others'),
      )
      .where('claim_id', '=', claimId)
      .where('direction', '=', direction)
      .where('status', '=', 'pending'),
  { acrossTenants: 'id' },
);

/**
 * Makes a transfer of a test card in one transaction: test mode's network always says yes, so there is
 * nothing to wait for.
 * @throws ApiError `card_not_found`, `idempotency_conflict`, `validation_failed` (a sum past the largest
 * integer). Other refusals are returned as the stored response.
 */
export function transferInTestMode(
  context: CommandContext,
  request: KeyedRequest<'top_up_card' | 'withdraw_from_card'>,
  asked: TransferRequest,
): Promise<KeyedResponse> {
  const { ring } = context;
  const direction = request.operation === 'top_up_card' ? 'topup' : 'withdrawal';
  return respondOnce(context, request, async (tx) => {
    const locked = await lockTestTerms({ tx, ring }, request, { counts: direction === 'topup' });
    if ('replayed' in locked) return locked;
    const { terms, card, balance, prepaidCents } = locked;
    const cardCents = balance.balanceCents;
    const on = { ...terms, request: asked, cardCents, arrivingCents: 0n };
    const draft = draftTransfer(direction, request.resourceId, card, on);
    if (direction === 'withdrawal') {
      const availableCents = cardCents - balance.heldCents;
      // Checked before anything is presented: a response never has a balance below zero.
      if (availableCents < asked.amount) throw insufficientCardBalance(asked.amount, availableCents);
      requireRoom(direction, asked.amount, prepaidCents);
    }
    const after = balanceAfter(draft, balance, false);
    const transfer = succeededTransfer(draft, after, accountTime(terms.clock));
    const outcome = transferOutcome(transfer, card, after);
    const ended = requestOutcome(ring, request, outcome, terms.clock);
    const values = { ...ended, row: JSON.stringify(transfer), pendingClaimId: null, asked: null };
    const funding = transferFunding(transfer);
    const moved = await moveTransfer(tx, fundingPosting(funding, 'single'), values).catch(refuseTooLarge);
    await requireFunds(tx, funding, moved.moved);
    requireStored(moved.wrote.is_stored);
    return { replayed: false, response: outcomeResponse(outcome) };
  });
}

const moveTransfer = statementWithPosting((_, transfer: InsertedFunding & KeyedOutcomeValues, ledger) => {
  const made = cte('made', insertTransfer(transfer));
  const { ctes, isStored } = endRequest(made, transfer);
  return sql<{ is_stored: boolean }>`
    ${withCtes([made, countLoad(made, 0), ...ctes])}
    SELECT ${ledger.answer}, ${isStored} AS is_stored FROM ${ledger.call}`;
});
