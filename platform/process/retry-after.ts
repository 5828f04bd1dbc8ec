/**
 * How long a response's Retry-After asks to wait: in seconds, or until an HTTP date (RFC 9110, 10.2.3).
 * @returns null if there is none that can be read
 */
export function retryAfterMs(header: string | string[] | undefined, nowMs = Date.now()): number | null {
  const text = header?.toString().trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const atMs = /^[A-Z][a-z]{2}, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}
