import type { PaymentSnapshot } from '../../../domain/payment.ts';

/** What a payment came to: requests as `id amount approved by`, movements as `id kind amount of`. */
export function inShort({
  requests,
  movements,
  authorizedCents,
  heldCents,
  endedBy,
  unreadable,
}: PaymentSnapshot) {
  return {
    requests: requests.map(({ id, amountCents, approved, by }) =>
      [id, amountCents, approved ? 'yes' : 'no', by].join(' '),
    ),
    movements: movements.map(({ id, kind, amountCents, ofAuthorization, refunds }) =>
      [id, kind, amountCents, ofAuthorization ? 'held' : 'forced', refunds].filter((it) => it).join(' '),
    ),
    state: [authorizedCents, heldCents, endedBy],
    unreadable: unreadable.map(({ id, what, amount, currency }) => `${id} ${what} ${amount} ${currency}`),
  };
}
