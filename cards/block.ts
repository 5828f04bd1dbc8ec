import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/mode.ts';
import { MAX_AMOUNT_CENTS } from '../domain/money.ts';
import { readBalance, readCardBalance } from '../ledger/balances.ts';
import { of, TRANSFER_COLUMNS } from '../platform/db/columns.ts';
import { type Transactor, writeStatement } from '../platform/db/sql.ts';
import type { OpenCommand } from '../requests/command-context.ts';
import { watchEnded } from './late-answers.ts';
import { releaseBalance } from './release-balance.ts';
import type { CardRow } from './resource.ts';
import { voidTransfer } from './transfers/end.ts';
import { transferRefusal } from './transfers/rules.ts';

/**
 * Makes the changes of a block other than the status itself (docs/partners/card-status.md): moves the card's
 * balance to the prepaid balance, fails its pending top-ups, and stops counting it as open. It runs in the
 * caller's transaction, which holds the locks of {@link lockPendingTopUps} and the card's.
 * @param card the row after the block
 * @returns the other claims that got a response
 */
export async function releaseBlockedCard(command: OpenCommand, card: CardRow): Promise<string[]> {
  const { tx } = command;
  await uncountOpenCard(tx, { partnerId: card.partner_id, mode: card.mode });
  await releaseBalance(tx, card, 'release');
  return failPendingTopUps(command, card);
}

const uncountOpenCard = writeStatement((db, { partnerId, mode }: Tenant) =>
  db
    .updateTable('account_usage')
    .set((eb) => ({ open_cards: eb('open_cards', '-', 1) }))
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode),
);

/**
 * Why a card can't be blocked. It is checked before the network is asked, because the card's balance must
 * have a place to go once the network has blocked it.
 */
export async function blockRefusal(tx: Transactor, card: CardRow): Promise<ApiError | null> {
  const { totalCents } = await readBalance(tx, card.partner_id, card.mode);
  const tenant = { partnerId: card.partner_id, mode: card.mode };
  const { balanceCents, heldCents } = await readCardBalance(tx, tenant, card.id);
  const fits = BigInt(totalCents) + BigInt(balanceCents - heldCents) <= BigInt(MAX_AMOUNT_CENTS);
  return fits ? null : releaseNotPossible();
}

/** The prepaid balance has no room for the card's balance: 409 `invalid_state`. */
export function releaseNotPossible(): ApiError {
  return new ApiError('invalid_state', {
    message:
      `Blocking the card would release its balance and take yours above the maximum of ${MAX_AMOUNT_CENTS} cents. ` +
      'Freeze the card instead, and contact us.',
  });
}

/**
 * Takes the locks that {@link failPendingTopUps} needs and that come before the card in the order of locks:
 * the account's usage, so that no top-up can begin, and the claims of the pending ones. The caller locks the
 * card next.
 */
export async function lockPendingTopUps(
  tx: Transactor,
  { partnerId, mode }: Tenant,
  cardId: string,
): Promise<void> {
  await lockUsage(tx, { partnerId, mode });
  // In a separate statement, because waiting for a lock does not refresh the snapshot of its own statement.
  await lockClaims(tx, { partnerId, mode, cardId });
}

/** Locks what is counted of an account: its open cards, what was loaded today, its reveals. */
export const lockUsage = writeStatement((db, { partnerId, mode }: Tenant) =>
  db
    .selectFrom('account_usage')
    .select('mode')
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .forNoKeyUpdate(),
);

const lockClaims = writeStatement((db, { partnerId, mode, cardId }: Tenant & { cardId: string }) =>
  db
    .selectFrom('idempotency_claim')
    .select('id')
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('id', 'in', ({ selectFrom }) =>
      selectFrom('card_transfer')
        .select('claim_id')
        .where('partner_id', '=', partnerId)
        .where('mode', '=', mode)
        .where('card_id', '=', cardId)
        .where('direction', '=', sql.lit<'topup'>('topup'))
        .where('status', '=', sql.lit<'pending'>('pending')),
    )
    .orderBy('id')
    .forNoKeyUpdate(),
);

/**
 * Ends every pending top-up of a blocked card: it fails with `card_blocked`, and its hold is released. If its
 * claim has no response yet, the top-up is refused with 409 instead and leaves nothing behind.
 * @param card the row after the block; responses and events have the card's balance from the ledger
 * @returns the claims that got a response, so that waiting requests can be notified after the commit
 */
export async function failPendingTopUps(command: OpenCommand, card: CardRow): Promise<string[]> {
  const { tx } = command;
  const pending = await lockTopUps(tx, { partnerId: card.partner_id, mode: card.mode, cardId: card.id });
  if (pending.length === 0) return [];
  const refusal = transferRefusal('topup', card.status);
  if (refusal === null) throw new Error(`top-ups of ${card.id} fail, which is ${card.status}`);
  for (const { claim_id: claimId, answered, ...transfer } of pending) {
    await voidTransfer(command, { claimId, answered, transfer, card }, 'card_blocked', refusal);
    // The network has not said no: it may still load the card.
    const { id, partner_id: partnerId, mode, card_id: cardId, fees } = transfer;
    const amountCents = Number(transfer.amount_cents);
    if (mode === 'live') await watchEnded(tx, { kind: 'topup', id, partnerId, cardId, amountCents, fees });
  }
  return pending.filter(({ answered }) => !answered).map(({ claim_id: claimId }) => claimId);
}

const lockTopUps = writeStatement((db, { partnerId, mode, cardId }: Tenant & { cardId: string }) =>
  db
    .selectFrom('card_transfer as t')
    .innerJoin('idempotency_claim as c', (join) =>
      join
        .onRef('c.id', '=', 't.claim_id')
        .onRef('c.partner_id', '=', 't.partner_id')
        .onRef('c.mode', '=', 't.mode'),
    )
    .select(of('t', TRANSFER_COLUMNS))
    .select(['c.id as claim_id', sql<boolean>`c.response_status IS NOT NULL`.as('answered')])
    .where('t.partner_id', '=', partnerId)
    .where('t.mode', '=', mode)
    .where('t.card_id', '=', cardId)
    .where('t.direction', '=', sql.lit<'topup'>('topup'))
    .where('t.status', '=', sql.lit<'pending'>('pending'))
    .orderBy('t.id')
    .forNoKeyUpdate('t'),
);
