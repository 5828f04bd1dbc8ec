import type { z } from 'zod';
import { Label } from '../../domain/fields.ts';
import {
  type NetworkAuthorizationReport,
  type NetworkTransaction,
  readReport,
} from '../../domain/network-transaction.ts';
import type { TransactionMessage } from '../card-network.ts';
import type { CardPayment, CardPaymentElement } from './wire.ts';

type Report = z.input<typeof NetworkAuthorizationReport> | z.input<typeof NetworkTransaction>;

/** What happens with a card without money: it is asked about, or its holder is. */
const WITHOUT_MONEY: ReadonlySet<string> = new Set([
  'card_authentication',
  'card_balance_inquiry',
  'card_validation',
]);

/**
 * Everything that a card payment says, in its order (docs/issuers.md, "What a card payment says"). Each
 * message has the id of Increase's element, or of the real-time decision that it was asked over; so the same
 * payment, read again, says nothing new.
 * @param isOver whether Increase holds nothing for the last settlement's pending transaction any more
 */
export function readCardPayment(payment: CardPayment, isOver: boolean): TransactionMessage[] {
  const last = lastSettlement(payment);
  const idle = idleAuthorizations(payment);
  return payment.elements.flatMap((element, index): TransactionMessage[] => {
    if (WITHOUT_MONEY.has(element.category) || isAboutIdle(element, idle)) return [];
    const report = readElement(payment, element, isOver && element.card_settlement?.id === last?.id);
    if (report === 'nothing') return [];
    const told = report ?? {
      networkCardId: payment.card_id,
      networkTransactionId: `${payment.id}/${index}`,
      type: element.category,
    };
    const value = { ...told, networkPaymentId: payment.id };
    const transaction = readReport(value);
    // It has an id, so it can be kept whatever else it lacks.
    if (transaction === null) throw new Error('an element of a card payment has no id');
    return [{ type: 'transaction', body: Buffer.from(JSON.stringify(value)), transaction }];
  });
}

/**
 * The pending transaction that says whether the payment's last settlement was the final one; null if none
 * does.
 */
export const pendingTransactionOf = (payment: CardPayment): string | null =>
  lastSettlement(payment)?.pending_transaction_id ?? null;

const lastSettlement = ({ elements }: CardPayment) =>
  elements.findLast(({ card_settlement: it }) => it != null && it.card_authorization !== null)
    ?.card_settlement ?? null;

/** @returns `nothing` if it concerns no money of ours; null if this release does not understand it */
function readElement(
  { id: networkAuthorizationId, card_id: networkCardId }: CardPayment,
  element: CardPaymentElement,
  isFinal: boolean,
): Report | 'nothing' | null {
  const ofCard = { networkCardId, networkAuthorizationId };
  switch (element.category) {
    case 'card_authorization': {
      const told = element.card_authorization;
      if (told == null) return null;
      if (told.direction === 'refund' || told.amount === 0) return 'nothing';
      return {
        ...ofCard,
        networkTransactionId: told.real_time_decision_id ?? told.id,
        type: 'approval',
        amountCents: told.amount,
        currency: usd(told.currency),
        expiresAt: new Date(told.expires_at).toISOString(),
        merchant: merchantOf(told, told.merchant_descriptor),
      };
    }
    case 'card_increment': {
      const told = element.card_increment;
      if (told == null) return null;
      if (told.amount === 0) return 'nothing';
      return {
        ...ofCard,
        networkTransactionId: told.real_time_decision_id ?? told.id,
        type: 'approval',
        amountCents: told.amount,
        currency: usd(told.currency),
      };
    }
    case 'card_decline': {
      const told = element.card_decline;
      if (told == null) return null;
      // A request for 0 cents leaves no record, and one in the refund direction holds nothing.
      if (told.direction === 'refund' || told.amount === 0) return 'nothing';
      return {
        ...ofCard,
        networkTransactionId: told.real_time_decision_id ?? told.id,
        type: 'decline',
        amountCents: told.amount,
        currency: usd(told.currency),
        merchant: merchantOf(told, told.merchant_descriptor),
      };
    }
    case 'card_reversal': {
      const told = element.card_reversal;
      if (told == null) return null;
      if (told.reversal_amount === 0) return 'nothing';
      return {
        ...ofCard,
        networkTransactionId: told.id,
        type: 'reversal',
        amountCents: told.reversal_amount,
        currency: usd(told.currency),
      };
    }
    case 'card_authorization_expiration': {
      const told = element.card_authorization_expiration;
      if (told == null) return null;
      return {
        ...ofCard,
        networkTransactionId: told.id,
        type: 'expiry',
        currency: usd(told.currency),
      };
    }
    case 'card_fuel_confirmation': {
      const told = element.card_fuel_confirmation;
      if (told == null) return null;
      const about = { ...ofCard, networkTransactionId: told.id, currency: usd(told.currency) };
      // A total of nothing gives back all that is left.
      if (told.updated_authorization_amount === 0) return { ...about, type: 'reversal' };
      return { ...about, type: 'total', amountCents: told.updated_authorization_amount };
    }
    case 'card_settlement': {
      const told = element.card_settlement;
      if (told == null) return null;
      if (told.amount === 0) return 'nothing';
      return {
        networkCardId,
        networkTransactionId: told.id,
        networkAuthorizationId: told.card_authorization === null ? null : networkAuthorizationId,
        type: 'clearing',
        amountCents: told.amount,
        currency: usd(told.currency),
        final: told.card_authorization === null || isFinal,
        merchant: merchantOf(told, told.merchant_name),
      };
    }
    case 'card_refund': {
      const told = element.card_refund;
      if (told == null) return null;
      if (told.amount === 0) return 'nothing';
      return {
        networkCardId,
        networkTransactionId: told.id,
        type: 'refund',
        amountCents: told.amount,
        currency: usd(told.currency),
        forced: true,
        merchant: merchantOf(told, told.merchant_name),
      };
    }
    case 'card_financial': {
      const told = element.card_financial;
      if (told == null) return null;
      if (told.amount === 0) return 'nothing';
      const about = {
        networkCardId,
        networkTransactionId: told.id,
        amountCents: told.amount,
        currency: usd(told.currency),
        merchant: merchantOf(told, told.merchant_descriptor),
      };
      if (told.direction === 'refund') return { ...about, type: 'refund', forced: true };
      // The money has moved, so it is never declined here.
      if (told.real_time_decision_id === null)
        return { ...about, type: 'clearing', networkAuthorizationId: null };
      // The decision held its amount, and no settlement follows that would take it.
      return { ...about, type: 'clearing', networkAuthorizationId, final: true };
    }
    default:
      return null;
  }
}

/**
 * Authorizations that hold nothing here: in the refund direction, or for nothing, unless they were increased.
 */
function idleAuthorizations({ elements }: CardPayment): ReadonlySet<string> {
  const idle = new Set<string>();
  for (const { card_authorization: told, card_increment: more } of elements) {
    if (told != null && (told.direction === 'refund' || told.amount === 0)) idle.add(told.id);
    if (more != null && more.amount > 0) idle.delete(more.card_authorization_id);
  }
  return idle;
}

function isAboutIdle(element: CardPaymentElement, idle: ReadonlySet<string>): boolean {
  const about =
    element.card_reversal ?? element.card_authorization_expiration ?? element.card_fuel_confirmation;
  return about != null && idle.has(about.card_authorization_id);
}

/** Anything but US dollars is kept for an operator: accounts are in dollars, so something is wrong. */
const usd = (currency: string) => currency as 'USD';

interface MerchantFields {
  merchant_category_code: string | null;
  merchant_city: string | null;
  merchant_country: string | null;
}

/** The merchant in our words. @param name the descriptor, or the name in a settlement */
export function merchantOf(told: MerchantFields, name: string | null) {
  return {
    name: words(name),
    categoryCode: words(told.merchant_category_code),
    city: words(told.merchant_city),
    country: words(told.merchant_country),
  };
}

/**
 * A text that can't be shown, such as one with control characters, must not keep the money from being booked.
 */
const words = (text: string | null): string | null => Label(255).safeParse(text?.trim()).data ?? null;
