import type { z } from 'zod';
import { Label } from '../../domain/fields.ts';
import {
  type NetworkAuthorizationReport,
  type NetworkTransaction,
  readReport,
} from '../../domain/network-transaction.ts';
import type { TransactionMessage } from '../card-network.ts';
import { toAlpha2 } from './countries.ts';
import { type Merchant, moneyOf, type Transaction } from './wire.ts';

/** A report in our words; fields that are left out have their defaults. */
type Report = z.input<typeof NetworkAuthorizationReport> | z.input<typeof NetworkTransaction>;

const REQUESTS: readonly string[] = ['AUTHORIZATION', 'FINANCIAL_AUTHORIZATION'];

/**
 * Everything that a transaction says, in our words and in its order (docs/issuers.md, "Lithic"). A message
 * has the id of its event, so whatever was told before changes nothing when it is told again with the next
 * event.
 */
export function readTransaction(transaction: Transaction): TransactionMessage[] {
  const { token, card_token: networkCardId, events } = transaction;
  const isDebit = ({ effective_polarity: polarity }: (typeof events)[number]) => polarity === 'DEBIT';
  const lastClearing = events.findLast((event) => event.type === 'CLEARING' && isDebit(event));
  const holdsNothing = transaction.amounts.hold.amount === 0;
  const messages: TransactionMessage[] = [];
  let isAuthorized = false;
  // By their amounts in cents.
  const requests = new Map<number, number>();
  const approvals = new Map<number, number>();

  for (const event of events) {
    const { amountCents, currency } = moneyOf(event.amounts);
    // Anything but US dollars is kept for an operator: accounts are in dollars, so something is wrong.
    const usd = currency as 'USD';
    const merchant = toMerchant(transaction.merchant);
    const about = { networkCardId, networkTransactionId: event.token, amountCents, currency: usd, merchant };
    const ofThis = { ...about, networkAuthorizationId: token };
    const tell = (report: Report) => messages.push(toMessage({ ...report, networkPaymentId: token }));

    // A request for nothing asks whether the card can be used.
    if (amountCents === 0 && event.type !== 'AUTHORIZATION_EXPIRY' && event.type !== 'AUTHORIZATION_ADVICE')
      continue;
    const isAdvice = event.type === 'AUTHORIZATION_ADVICE' && isDebit(event) && amountCents > 0;
    const isApproved = event.result === 'APPROVED';
    // An advice that is no new total asks for money, and is among the authorization's requests once it is
    // told.
    const isRequest =
      (isDebit(event) && REQUESTS.includes(event.type)) || (isAdvice && !(isApproved && isAuthorized));
    if (isRequest) requests.set(amountCents, (requests.get(amountCents) ?? 0) + 1);
    if (!isApproved) {
      // A reversal or a clearing that was declined moves nothing, and neither does a request to give money.
      if (isRequest) tell({ ...ofThis, type: 'decline', requestNumber: requests.get(amountCents) });
      continue;
    }
    if (isRequest) approvals.set(amountCents, (approvals.get(amountCents) ?? 0) + 1);

    switch (event.type) {
      case 'AUTHORIZATION':
        if (!isRequest) break;
        tell({ ...ofThis, type: 'approval', approvalNumber: approvals.get(amountCents) });
        isAuthorized = true;
        break;
      case 'AUTHORIZATION_ADVICE':
        if (!isDebit(event)) break;
        if (amountCents === 0) {
          if (isAuthorized) tell({ ...ofThis, type: 'reversal', amountCents: null });
          break;
        }
        if (isAuthorized) tell({ ...ofThis, type: 'total' });
        else tell({ ...ofThis, type: 'approval', approvalNumber: approvals.get(amountCents) });
        isAuthorized = true;
        break;
      case 'AUTHORIZATION_REVERSAL':
        // An authorization of a refund holds nothing, so there is nothing to give back.
        if (isAuthorized) tell({ ...ofThis, type: 'reversal' });
        break;
      case 'AUTHORIZATION_EXPIRY':
        if (isAuthorized) tell({ ...ofThis, type: 'expiry', amountCents: null });
        break;
      case 'CLEARING':
        if (!isDebit(event)) tell({ ...about, type: 'refund', forced: true });
        else if (!isAuthorized) tell({ ...about, type: 'clearing', networkAuthorizationId: null });
        else tell({ ...ofThis, type: 'clearing', final: holdsNothing && event === lastClearing });
        break;
      case 'FINANCIAL_AUTHORIZATION':
        // Its request held the amount, and nothing else takes it. It has moved, so it is not decided again.
        if (isDebit(event)) tell({ ...ofThis, type: 'clearing' });
        else tell({ ...about, type: 'refund', forced: true });
        break;
      case 'RETURN':
      case 'FINANCIAL_CREDIT_AUTHORIZATION':
        tell({ ...about, type: 'refund', forced: true });
        break;
      case 'RETURN_REVERSAL':
        tell({ ...about, type: 'clearing', networkAuthorizationId: null });
        break;
      case 'BALANCE_INQUIRY':
      case 'CREDIT_AUTHORIZATION':
      case 'CREDIT_AUTHORIZATION_ADVICE':
        break;
      default:
        // A correction, or something new: it is kept for an operator, because no report has this type.
        tell({ ...about, type: event.type.toLowerCase() as 'refund' });
    }
  }
  return messages;
}

function toMessage(told: Report): TransactionMessage {
  const transaction = readReport(told);
  if (transaction === null) throw new Error('a message about a transaction has no id');
  return { type: 'transaction', body: Buffer.from(JSON.stringify(told)), transaction };
}

/** The merchant in our words. */
export function toMerchant({ descriptor, mcc, city, country }: Merchant) {
  return {
    name: words(descriptor),
    categoryCode: words(mcc),
    city: words(city),
    country: toAlpha2(country ?? ''),
  };
}

/**
 * A text that can't be shown, such as one with control characters, must not keep the money from being booked.
 */
const words = (text: string | null | undefined): string | null =>
  Label(255).safeParse(text?.trim()).data ?? null;
