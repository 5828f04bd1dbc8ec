import type { Tenant } from '../../domain/mode.ts';
import { CARD_COLUMNS, of, TRANSFER_COLUMNS } from '../../platform/db/columns.ts';
import { type Transactor, writeStatement } from '../../platform/db/sql.ts';
import type { Outcome } from '../../requests/outcome.ts';
import type { Funding } from '../funding-posting.ts';
import { type CardBalance, type CardRow, presentCard } from '../resource.ts';
import { presentTransfer, type TransferRow } from './resource.ts';

/** A card's balance after a transfer. @param isHeld whether its money was held */
export function balanceAfter(
  { direction, amount_cents: cents }: TransferRow,
  { balanceCents, heldCents }: CardBalance,
  isHeld: boolean,
): CardBalance {
  const amountCents = Number(cents);
  if (direction === 'topup') return { balanceCents: balanceCents + amountCents, heldCents };
  return {
    balanceCents: balanceCents - amountCents,
    heldCents: isHeld ? heldCents - amountCents : heldCents,
  };
}

/**
 * The row of a transfer whose money has moved. @param balance the card's, after that @param at the account's
 * time
 */
export const succeededTransfer = (
  transfer: TransferRow,
  { balanceCents }: CardBalance,
  at: Date,
): TransferRow => ({
  ...transfer,
  status: 'succeeded',
  failure_code: null,
  card_balance_cents: String(balanceCents),
  completed_at: at.toISOString(),
});

/** How a transfer ended. @param transfer, card and balance as they are afterwards */
export function transferOutcome(transfer: TransferRow, card: CardRow, balance: CardBalance): Outcome {
  const resource = presentTransfer(transfer, balance.balanceCents);
  return {
    type: `${transfer.direction}.${transfer.status === 'succeeded' ? 'succeeded' : 'failed'}`,
    mode: transfer.mode,
    cardId: card.id,
    data: { [transfer.direction]: resource, card: presentCard(card, balance) },
    response: { status: 201, resource },
  };
}

/** What the ledger moves for a transfer. */
export const transferFunding = (transfer: TransferRow): Funding => ({
  operationId: `${transfer.direction}/${transfer.id}`,
  partnerId: transfer.partner_id,
  mode: transfer.mode,
  cardId: transfer.card_id,
  from: transfer.direction === 'topup' ? 'prepaid' : 'card',
  step: transfer.direction,
  code: transfer.direction,
  amountCents: Number(transfer.amount_cents),
  fees: transfer.fees,
});

/** A pending transfer, whose claim, card and row the transaction holds. */
export interface PendingTransfer {
  claimId: string;
  /** Whether its claim has a response. */
  answered: boolean;
  /** The request that made the claim. */
  requestId: string;
  transfer: TransferRow;
  card: CardRow;
  /** The card's. */
  balance: CardBalance;
}

/**
 * Locks a claim and its card, then its transfer. @returns null if that transfer is not pending, or not there
 */
export async function lockPendingTransfer(tx: Transactor, claimId: string): Promise<PendingTransfer | null> {
  const [claimed] = await lockClaimAndCard(tx, { claimId });
  if (claimed === undefined) return null;
  const { transfer_id: transferId, request_id: requestId, answered, ...card } = claimed;
  const [locked] = await lockTransfer(tx, { partnerId: card.partner_id, mode: card.mode, transferId });
  if (locked === undefined || locked.status !== 'pending') return null;
  const { card_cents: cardCents, card_held_cents: heldCents, ...transfer } = locked;
  const balance = { balanceCents: Number(cardCents ?? 0), heldCents: Number(heldCents ?? 0) };
  return { claimId, answered, requestId, transfer, card, balance };
}

const lockClaimAndCard = writeStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim as c')
      .innerJoin('card as k', 'k.id', 'c.card_id')
      .select(of('k', CARD_COLUMNS))
      .select(['c.resource_id as transfer_id', 'c.request_id'])
      .select((eb) => eb('c.response_status', 'is not', null).$castTo<boolean>().as('answered'))
      .where('c.id', '=', claimId)
      .$narrowType<{ transfer_id: string }>()
      .forNoKeyUpdate(),
  { acrossTenants: 'id' },
);

// Every change of a card's balance holds the card's lock, and the caller has taken it before this statement
// begins.
const lockTransfer = writeStatement((db, { partnerId, mode, transferId }: Tenant & { transferId: string }) =>
  db
    .selectFrom('card_transfer as t')
    .leftJoin('ledger.account as a', (join) =>
      join
        .onRef('a.card_id', '=', 't.card_id')
        .onRef('a.partner_id', '=', 't.partner_id')
        .onRef('a.mode', '=', 't.mode'),
    )
    .select(of('t', TRANSFER_COLUMNS))
    .select(['a.posted as card_cents', 'a.held as card_held_cents'])
    .where('t.id', '=', transferId)
    .where('t.partner_id', '=', partnerId)
    .where('t.mode', '=', mode)
    .forNoKeyUpdate('t'),
);
