import { Ours } from './history.ts';
import { type Issuer, MERCHANT } from './issuers.ts';

/** A payment on a card with this much, at an issuer. */
export function openPayment(issuer: Issuer, balanceCents = 10_000) {
  const ours = new Ours({ status: 'active', balanceCents, heldCents: 0, prepaidCents: 0 });
  /** The issuer's question about this much, with the name that it gives to it. */
  const question = (amountCents: number) => {
    const { named, asked } = issuer.name();
    return { named, put: () => ours.ask({ key: named, ...asked, amountCents, merchant: MERCHANT }) };
  };
  /** The issuer asks, and tells what it makes of the answer when it is read. */
  const ask = (cents: number, outcome: (said: boolean) => boolean = (said) => said) => {
    const { named, put } = question(cents);
    issuer.request(cents, outcome(put()), named);
  };
  const tell = () => ours.book(issuer.read().snapshot());
  const seen = () => {
    const { authorization } = ours.payment;
    const { status = null, amountCents = 0, heldCents = 0, settledCents = 0 } = authorization ?? {};
    return [status, amountCents, heldCents, settledCents];
  };
  const money = () => [ours.card.balanceCents, ours.card.heldCents, ours.card.prepaidCents];
  return { ours, question, ask, tell, seen, money };
}
