import { clearingShares } from '../domain/authorization.ts';
import type { CardStatus } from '../domain/card-status.ts';
import { MAX_AMOUNT_CENTS } from '../domain/money.ts';
import type { PaymentMovement } from '../domain/payment.ts';

/** The money that pays. */
export interface CardMoney {
  status: CardStatus;
  balanceCents: number;
  /** What authorizations and withdrawals hold of it, this one included. */
  heldCents: number;
  /** The account's prepaid balance. */
  prepaidCents: number;
}

export interface PaidMovement extends PaymentMovement {
  fromHoldCents: number;
  /** From the card's available balance; a refund's goes there. */
  onCardCents: number;
  /** From the prepaid balance; a refund's goes there. */
  onPartnerCents: number;
  cardBalanceAfterCents: number;
}

/**
 * The network has moved the money, so nothing is declined: a clearing takes its payment's hold, then what
 * else is on the card, then the prepaid balance. What it gives back goes to the card, or to the prepaid
 * balance if the card can't be used any more.
 */
export function payMovements(
  movements: readonly PaymentMovement[],
  { ofPaymentCents, clearedCents, ...money }: CardMoney & { ofPaymentCents: number; clearedCents: number },
) {
  let heldCents = ofPaymentCents;
  let settledCents = clearedCents;
  let card: CardMoney = money;
  const isOver = money.status === 'blocked' || money.status === 'failed';
  const paid = movements.map((movement): PaidMovement => {
    const { amountCents, kind, ofAuthorization } = movement;
    if (kind === 'refund') {
      const onCardCents = isOver ? 0 : amountCents;
      const onPartnerCents = amountCents - onCardCents;
      const balanceCents = card.balanceCents + onCardCents;
      card = { ...card, balanceCents, prepaidCents: card.prepaidCents + onPartnerCents };
      return {
        ...movement,
        fromHoldCents: 0,
        onCardCents,
        onPartnerCents,
        cardBalanceAfterCents: balanceCents,
      };
    }
    const shares = clearingShares(amountCents, {
      heldCents: ofAuthorization ? heldCents : 0,
      availableCents: isOver ? 0 : Math.max(0, card.balanceCents - card.heldCents),
    });
    heldCents -= shares.fromHoldCents;
    if (ofAuthorization) settledCents += amountCents;
    card = {
      ...card,
      balanceCents: card.balanceCents - shares.fromHoldCents - shares.fromAvailableCents,
      heldCents: card.heldCents - shares.fromHoldCents,
      prepaidCents: card.prepaidCents - shares.fromPartnerCents,
    };
    return {
      ...movement,
      fromHoldCents: shares.fromHoldCents,
      onCardCents: shares.fromAvailableCents,
      onPartnerCents: shares.fromPartnerCents,
      cardBalanceAfterCents: card.balanceCents,
    };
  });
  return { movements: paid, clearedCents: settledCents, card, heldCents };
}

/** Holds what the network holds, or what the card has of that. */
export function holdOnCard(card: CardMoney, nowCents: number, targetCents: number) {
  const freeCents = card.status === 'blocked' ? 0 : Math.max(0, card.balanceCents - card.heldCents);
  const heldCents = Math.min(targetCents, nowCents + freeCents);
  return { heldCents, card: { ...card, heldCents: card.heldCents + heldCents - nowCents } };
}

/**
 * What becomes free on a blocked card goes to the prepaid balance; what does not fit stays, as at the block.
 */
export function releaseIfBlocked(
  card: CardMoney,
  isFreed: boolean,
): { card: CardMoney; releasedCents: number } {
  const freeCents = Math.min(card.balanceCents - card.heldCents, MAX_AMOUNT_CENTS - card.prepaidCents);
  if (card.status !== 'blocked' || !isFreed || freeCents <= 0) return { card, releasedCents: 0 };
  const { balanceCents, prepaidCents } = card;
  return {
    card: { ...card, balanceCents: balanceCents - freeCents, prepaidCents: prepaidCents + freeCents },
    releasedCents: freeCents,
  };
}
