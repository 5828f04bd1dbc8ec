/** The textbook Luhn check, written on its own. */
export function passesLuhn(number: string): boolean {
  const sum = [...number]
    .reverse()
    .map((digit, index) => (index % 2 === 1 ? [0, 2, 4, 6, 8, 1, 3, 5, 7, 9][Number(digit)] : Number(digit)))
    .reduce((total: number, digit) => total + (digit ?? Number.NaN), 0);
  return sum % 10 === 0;
}
