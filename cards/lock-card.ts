import { sql } from 'kysely';
import { heldClock } from '../accounts/clock.ts';
import type { AccountClock } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/mode.ts';
import { readCardBalance } from '../ledger/balances.ts';
import { CARD_COLUMNS } from '../platform/db/columns.ts';
import { readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { OpenCommand } from '../requests/command-context.ts';
import { findReplay, type KeyedResponse } from '../requests/respond-once.ts';
import type { CardBalance, CardRow } from './resource.ts';

// A separate module, because both funding and status changes lock the card, and the latter import the former.

/** A card that a transaction has locked. */
export interface LockedCard extends CardRow {
  cardholder_erased_at: string | null;
  /** The claim of the status change that is under way at the network. */
  status_change_claim_id: string | null;
  /** The account's, which the transaction holds. */
  clock: AccountClock;
}

/** Locks a card's row until the transaction ends. @returns undefined if the account has none in this mode */
export async function lockCard(
  tx: Transactor,
  { partnerId, mode }: Tenant,
  cardId: string,
): Promise<LockedCard | undefined> {
  const [card] = await lock(tx, { partnerId, mode, cardId });
  return card;
}

const lock = writeStatement((db, { partnerId, mode, cardId }: Tenant & { cardId: string }) =>
  db
    .selectFrom('card')
    .select([
      ...CARD_COLUMNS,
      'cardholder_erased_at',
      'status_change_claim_id',
      heldClock(sql.ref('partner_id'), sql.ref('mode')).as('clock'),
    ])
    .where('id', '=', cardId)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .forNoKeyUpdate(),
);

/**
 * Locks the card that a request is about, then looks the request's key up: the beginning of a change that is
 * one transaction, in either mode (respondOnce).
 * @returns the card with its balance, or the stored response if the key has one
 * @throws ApiError `card_not_found`, `idempotency_in_flight`, `idempotency_conflict`
 */
export async function lockRequestedCard(
  { tx, ring }: OpenCommand,
  request: KeyedRequest & { cardId: string },
): Promise<{ card: LockedCard; balance: CardBalance; clock: AccountClock } | KeyedResponse> {
  const card = await lockCard(tx, request, request.cardId);
  // It comes before the 404: the card may be one whose creation was refused after it was changed.
  const replay = await findReplay({ tx, ring }, request);
  if (replay !== null) return replay;
  if (card === undefined) throw new ApiError('card_not_found');
  return { card, balance: await readCardBalance(tx, request, card.id), clock: card.clock };
}

/**
 * Whether a locked card's creation has been answered with the card. Until then it can still be refused, and
 * then there never was a card.
 */
export async function isAnnounced(tx: Transactor, card: CardRow): Promise<boolean> {
  if (card.status !== 'funding_pending') return true;
  const { id: cardId, partner_id: partnerId, mode } = card;
  const unanswered = await unansweredCreation(tx, { partnerId, mode, cardId });
  return unanswered.length === 0;
}

const unansweredCreation = readStatement((db, { partnerId, mode, cardId }: Tenant & { cardId: string }) =>
  db
    .selectFrom('card as k')
    .innerJoin('idempotency_claim as c', (join) =>
      join
        .onRef('c.id', '=', 'k.claim_id')
        .onRef('c.partner_id', '=', 'k.partner_id')
        .onRef('c.mode', '=', 'k.mode'),
    )
    .select('c.id')
    .where('k.id', '=', cardId)
    .where('k.partner_id', '=', partnerId)
    .where('k.mode', '=', mode)
    .where('c.response_status', 'is', null),
);

/** The refusal of a request that was claimed before the creation of its card was refused. */
export const neverIssued = (): ApiError =>
  new ApiError('invalid_state', {
    message: 'The card was never issued: the card network declined it. This request did nothing.',
  });

/** {@link lockCard} for an operator's command, or a queue of the worker, which has only the card's id. */
export async function lockAnyCard(tx: Transactor, cardId: string): Promise<CardRow | undefined> {
  const [card] = await lockAny(tx, { cardId });
  return card;
}

const lockAny = writeStatement(
  (db, { cardId }: { cardId: string }) =>
    db.selectFrom('card').select(CARD_COLUMNS).where('id', '=', cardId).forNoKeyUpdate(),
  { acrossTenants: 'operator' },
);
