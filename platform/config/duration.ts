const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/**
 * `250ms`, `30s`, `5m`, `8h` in milliseconds; undefined for anything else (docs/operating.md,
 * "Configuration").
 */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,9})(ms|s|m|h)$/.exec(text);
  if (match === null) return undefined;
  return Number(match[1]) * UNITS[match[2] as keyof typeof UNITS];
}
