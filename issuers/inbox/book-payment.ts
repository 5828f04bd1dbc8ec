import { ApiError } from '../../domain/api-error.ts';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import { bookPayments } from '../../payments/book-payments.ts';
import type { BookedPayment } from '../../payments/booking-rows.ts';
import { isLockTimeout } from '../../platform/db/is-retryable.ts';
import type { Orm } from '../../platform/db/orm.ts';
import type { Transactor } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { asAccount } from '../../platform/process/work-context.ts';
import { areDismissed } from './decide-element.ts';
import { findPaymentCard } from './find-card.ts';
import type { NotBooked } from './inbox.ts';
import type { WaitingElement, WhyWaiting } from './tables.ts';

/** How long a booking waits for a card that is locked: it is tried again, and others need the connection. */
export const MAX_LOCK_WAIT_MS = 250;

/** A payment, as it was read at an issuer. */
export interface ReadPayment {
  paymentId: string;
  /** Null: the issuer has no such payment. */
  snapshot: PaymentSnapshot | null;
  /** When the read began; null if the issuer sent it. */
  readAt: Date | null;
}

/**
 * Books a payment of an issuer's on its card.
 * @param alongside is written in the same transaction
 * @returns what was booked; null if we have none of it, and neither has the issuer
 */
export async function bookRead(
  { orm, authorizationTtlMs: ttlMs }: { orm: Orm; authorizationTtlMs: number },
  { paymentId, snapshot, readAt }: ReadPayment,
  alongside: (tx: Transactor) => Promise<unknown>,
): Promise<BookedPayment | NotBooked | null> {
  const networkCardId = snapshot?.networkCardId ?? null;
  const card = await findPaymentCard(orm.em.fork(), paymentId, networkCardId);
  const not = (reason: WhyWaiting): NotBooked => ({ reason, networkCardId, elements: elementsOf(snapshot) });
  if (card === null || card.unusable !== null) {
    const waits = not(card?.unusable ?? 'card_unknown');
    const isOver =
      waits.reason !== 'card_not_issued' &&
      (snapshot === null || (await areDismissed(orm.em.fork(), waits.elements)));
    if (!isOver) return waits;
    await transaction(orm, alongside);
    return null;
  }
  try {
    return await asAccount(card, () =>
      transaction(orm, async (tx) => {
        const payment = { cardId: card.cardId, paymentId, snapshot, readAt };
        const [booked = null] = await bookPayments(tx, [payment], { ttlMs, lockWaitMs: MAX_LOCK_WAIT_MS });
        await alongside(tx);
        return booked;
      }),
    );
  } catch (error) {
    if (isLockTimeout(error)) return not('not_taken');
    if (error instanceof ApiError && error.code === 'validation_failed') return not('unbookable');
    throw error;
  }
}

/** The money in a payment, for whoever has to decide it. */
const elementsOf = (snapshot: PaymentSnapshot | null): WaitingElement[] => [
  ...(snapshot?.movements ?? []).map(({ id, kind, amountCents: amount }) => ({
    id,
    what: kind,
    amount,
    currency: 'USD',
  })),
  ...(snapshot?.unreadable ?? []).map(({ id, what, amount, currency }) => ({ id, what, amount, currency })),
];
