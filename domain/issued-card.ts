/** What a network gives a card when it issues it. An operator who settles an issuance by hand may not know the digits. */
export interface IssuedCard {
  networkCardId: string | null;
  last4: string | null;
  expMonth: number | null;
  expYear: number | null;
}
