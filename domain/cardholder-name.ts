/** What is embossed on a card: the names it was given, null where it was given none. */
export function cardholderName(card: {
  cardholder_first_name: string | null;
  cardholder_last_name: string | null;
}): string | null {
  const names = [card.cardholder_first_name, card.cardholder_last_name].filter((part) => part !== null);
  return names.length === 0 ? null : names.join(' ');
}
