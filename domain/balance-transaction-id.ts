const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const TAIL_BITS = 75n;
const TAIL = (1n << TAIL_BITS) - 1n;

/**
 * The public id of an entry of a prepaid account: its number in the account's chain first, so that ids sort in order,
 * then digits of its transfer's UUID, so that none can be guessed. Nothing has to be stored to find the entry again.
 */
export function balanceTransactionId(version: number, transferId: string): string {
  const value = (BigInt(version) << TAIL_BITS) | (BigInt(`0x${transferId.replaceAll('-', '')}`) & TAIL);
  const digits = value.toString(32).padStart(26, '0');
  return `btx_${Array.from(digits, (digit) => ALPHABET[Number.parseInt(digit, 32)]).join('')}`;
}

/** The number in the chain that an id of this shape speaks of; whether there is such an entry has to be looked up. */
export function versionOf(balanceTransactionId: string): bigint {
  let value = 0n;
  for (const digit of balanceTransactionId.slice('btx_'.length)) {
    value = value * 32n + BigInt(ALPHABET.indexOf(digit));
  }
  return value >> TAIL_BITS;
}
