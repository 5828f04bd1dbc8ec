import assert from 'node:assert/strict';

const HOUR_MS = 3_600_000;

/** From an hour ago until in an hour. */
export const aroundNow = () =>
  new URLSearchParams({
    from: new Date(Date.now() - HOUR_MS).toISOString(),
    to: new Date(Date.now() + HOUR_MS).toISOString(),
  });

/** The cells of a report none of which has a line break or a comma. */
export function rowsOf(text: string): string[][] {
  assert.ok(text.endsWith('\r\n'));
  const lines = text.slice(0, -2).split('\r\n');
  return lines.map((line) => line.split(','));
}
