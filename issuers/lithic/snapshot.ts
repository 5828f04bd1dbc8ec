import {
  afterReversal,
  onlyClearing,
  type PaymentEnd,
  type PaymentMerchant,
  type PaymentMovement,
  type PaymentRequest,
  type PaymentSnapshot,
  type UnreadableElement,
} from '../../domain/payment.ts';
import { words } from '../merchant-words.ts';
import { toAlpha2 } from './countries.ts';
import { type Merchant, moneyOf, type Transaction } from './wire.ts';

type LithicEvent = Transaction['events'][number];

/** Events that hold or move no money of ours. */
const WITHOUT_MONEY: ReadonlySet<string> = new Set([
  'BALANCE_INQUIRY',
  'CREDIT_AUTHORIZATION',
  'CREDIT_AUTHORIZATION_ADVICE',
]);
const REQUESTS: ReadonlySet<string> = new Set(['AUTHORIZATION', 'FINANCIAL_AUTHORIZATION']);
const MOVEMENTS: ReadonlySet<string> = new Set([
  'CLEARING',
  'FINANCIAL_AUTHORIZATION',
  'RETURN',
  'FINANCIAL_CREDIT_AUTHORIZATION',
  'RETURN_REVERSAL',
]);

/** A transaction of Lithic's as a payment (docs/issuers.md, "Lithic"). */
export function snapshotTransaction(transaction: Transaction): PaymentSnapshot {
  const { token, card_token: networkCardId, updated, amounts } = transaction;
  const merchant = toMerchant(transaction.merchant);
  const requests: PaymentRequest[] = [];
  const movements: PaymentMovement[] = [];
  const unreadable: UnreadableElement[] = [];
  let authorizedCents = 0;
  let clearedCents = 0;
  let isAuthorized = false;
  let isCredited = false;
  let endedBy: PaymentEnd | null = null;

  const giveBack = (cents: number) => {
    authorizedCents = afterReversal({ authorizedCents, clearedCents }, cents);
    endedBy = 'reversal';
  };

  for (const event of transaction.events) {
    const { type, token: id, created: at } = event;
    const { amountCents, currency } = moneyOf(event.amounts);
    const isDebit = event.effective_polarity === 'DEBIT';
    const isApproved = event.result === 'APPROVED';
    if (type === 'AUTHORIZATION_EXPIRY') {
      if (isApproved) endedBy = 'expiry';
      continue;
    }
    if (type === 'AUTHORIZATION_ADVICE' && amountCents === 0) {
      if (isApproved && isDebit) giveBack(authorizedCents);
      continue;
    }
    if (isApproved && !isDebit && /AUTHORIZATION$/.test(type)) isCredited = true;
    if (amountCents === 0 || WITHOUT_MONEY.has(type)) continue;
    if (!isDebit && (type === 'AUTHORIZATION' || type.startsWith('AUTHORIZATION_'))) continue;
    const isTotal = type === 'AUTHORIZATION_ADVICE' && isAuthorized && isApproved;
    const isRequest = isDebit && (REQUESTS.has(type) || (type === 'AUTHORIZATION_ADVICE' && !isTotal));
    // What was declined moves and holds nothing, and only a request to take money is a decline.
    if (!isApproved && !isRequest) continue;
    if (currency !== 'USD') {
      unreadable.push({ id, what: type, at, currency, amount: amountCents });
      continue;
    }
    if (isRequest) {
      requests.push({
        id,
        amountCents,
        approved: isApproved,
        reason: isApproved ? null : 'declined_by_network',
        by: type === 'AUTHORIZATION_ADVICE' ? 'network' : 'us',
        merchant,
      });
      if (!isApproved) continue;
      authorizedCents += amountCents;
      isAuthorized ||= type !== 'FINANCIAL_AUTHORIZATION';
    }
    if (MOVEMENTS.has(type)) {
      const movement = toMovement(event, isDebit, isAuthorized);
      const refunds = movement.kind === 'clearing' ? null : onlyClearing(movements);
      movements.push({ id, amountCents, merchant, refunds, ...movement });
      if (!movement.ofAuthorization) continue;
      clearedCents += amountCents;
      endedBy = 'clearing';
    } else if (isTotal) authorizedCents = amountCents;
    else if (type === 'AUTHORIZATION_REVERSAL') giveBack(amountCents);
    // A correction, or something new.
    else if (!isRequest) unreadable.push({ id, what: type, at, currency, amount: amountCents });
  }

  const { amount, currency } = amounts.hold;
  const holds = isAuthorized && !isCredited;
  return {
    paymentId: token,
    networkCardId,
    version: [transaction.events.length, Date.parse(updated)],
    requests,
    movements,
    authorizedCents,
    heldCents: currency !== 'USD' ? null : holds ? Math.abs(amount) : 0,
    endedBy,
    expiresAt: null,
    unreadable,
  };
}

function toMovement(
  { type }: LithicEvent,
  isDebit: boolean,
  isAuthorized: boolean,
): Pick<PaymentMovement, 'kind' | 'ofAuthorization'> {
  if (type === 'RETURN_REVERSAL') return { kind: 'refund_reversal', ofAuthorization: false };
  if (!isDebit || type === 'RETURN') return { kind: 'refund', ofAuthorization: false };
  // Its request held the amount, and nothing else takes it.
  if (type === 'FINANCIAL_AUTHORIZATION') return { kind: 'clearing', ofAuthorization: true };
  return { kind: 'clearing', ofAuthorization: isAuthorized };
}

/** The merchant in our words. */
export function toMerchant({ descriptor, mcc, city, country }: Merchant): PaymentMerchant {
  return {
    name: words(descriptor),
    categoryCode: words(mcc),
    city: words(city),
    country: toAlpha2(country ?? ''),
  };
}
