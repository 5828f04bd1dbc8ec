/**
 * How many letters were left out, added, changed or swapped with the next one (the optimal string alignment distance).
 * @param max more than this is not counted exactly
 */
export function slipsBetween(one: string, other: string, max: number): number {
  if (Math.abs(one.length - other.length) > max) return max + 1;
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const change = one[i - 1] === other[j - 1] ? 0 : 1;
      let slips = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + change);
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1])
        slips = Math.min(slips, (beforeLast[j - 2] ?? 0) + 1);
      row.push(slips);
    }
    beforeLast = last;
    last = row;
  }
  return last[other.length] ?? 0;
}

/** The word that somebody who typed `text` most likely meant; undefined if more than a third of it would be wrong. */
export function nearestWord<Word extends string>(text: string, words: readonly Word[]): Word | undefined {
  const max = Math.floor(text.length / 3);
  let nearest: Word | undefined;
  let fewest = max + 1;
  for (const word of words) {
    const slips = slipsBetween(text, word, max);
    if (slips < fewest) [nearest, fewest] = [word, slips];
  }
  return nearest;
}
