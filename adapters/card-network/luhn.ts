/** The last digit that makes `digits` followed by it pass the Luhn check (ISO/IEC 7812-1, annex B). */
export function luhnCheckDigit(digits: string): string {
  let sum = 0;
  for (let fromRight = 1; fromRight <= digits.length; fromRight++) {
    const digit = Number(digits[digits.length - fromRight]);
    const weighted = fromRight % 2 === 1 ? digit * 2 : digit;
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return String((10 - (sum % 10)) % 10);
}
