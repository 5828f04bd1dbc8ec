import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import type { CidrBlock } from '../../domain/ip-address.ts';
import { isPercentEncoded } from '../../domain/percent-encoding.ts';
import { isLoopbackAddress } from '../../domain/public-address.ts';
import type { RingKey } from '../crypto/key-ring.ts';
import { parseDuration } from './duration.ts';
import { WORKER_QUEUES } from './task-queues.ts';
import { parseTimeOfDay } from './time-of-day.ts';

// What the text of a variable can be, and what it is read as.

export const splitList = (text: string): string[] => text.split(',').map((part) => part.trim());

export const Text = z.string().min(1);
export const PrintableKey = z.string().regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces');
export const Duration = z.string().transform((text, ctx) => {
  const durationMs = parseDuration(text);
  if (durationMs === undefined) ctx.addIssue('must be a duration: 250ms, 30s, 5m or 8h');
  return durationMs ?? z.NEVER;
});
export const WebhookTimeout = Duration.refine(
  (timeoutMs) => timeoutMs >= 1 && timeoutMs <= 20_000,
  "must be a duration from 1ms to 20s, since an attempt takes up one of its endpoint's slots for that long",
);
export const durationUpTo = (maxMs: number, max: string) =>
  Duration.refine(
    (durationMs) => durationMs > 0 && durationMs <= maxMs,
    `must be longer than 0 and at most ${max}`,
  );
export const Durations = z
  .string()
  .transform(splitList)
  .pipe(z.array(Duration).min(1).max(20, 'must be at most 20 durations'));
export const LedgerCheckAt = z.string().transform((text, ctx) => {
  const time = parseTimeOfDay(text);
  if (time === undefined) ctx.addIssue('must be a time of day in UTC, such as 03:00');
  return time ?? z.NEVER;
});
export const wholeNumber = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, error)
    .transform(Number)
    .pipe(z.number().min(min, error).max(max, error));
};
export const Port = wholeNumber(1, 65_535);
export const PostgresUrl = z.url({ protocol: /^postgres(ql)?$/, error: 'must be a postgres:// URL' });

export const Keys = z.string().transform((text, ctx): RingKey[] => {
  const keys = splitList(text).map((part) => {
    const [, id, encoded] = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/]{43}=)$/.exec(part) ?? [];
    return { id: id ?? '', secret: Buffer.from(encoded ?? '', 'base64') };
  });
  if (keys.some((key) => key.secret.length !== 32)) {
    ctx.addIssue('must be id:base64(32 bytes), comma-separated, the current key first');
  } else if (new Set(keys.map((key) => key.id)).size !== keys.length) {
    ctx.addIssue('must not contain a key id twice');
  }
  return keys;
});

export const YesOrNo = z.enum(['true', 'false'], 'must be true or false').default('false');
export const HTTP = { protocol: /^https?$/, error: 'must be an http(s) URL' };
export const Ratio = z
  .string()
  .regex(/^(0(\.\d{1,9})?|1(\.0{1,9})?)$/, 'must be from 0 to 1')
  .default('1')
  .transform(Number);
/** In OpenTelemetry's format: `name=value`, comma-separated, values percent-encoded. */
export const ExporterHeaders = z
  .string()
  .regex(
    /^([!#$&'*+.^_`|~\w-]+=[^,\s]*)?(,[!#$&'*+.^_`|~\w-]+=[^,\s]*)*$/,
    'must be name=value, comma-separated',
  )
  .refine(isPercentEncoded, 'must have percent-encoded values')
  .default('')
  .transform((text) =>
    Object.fromEntries(
      text
        .split(',')
        .filter(Boolean)
        .map((pair) => [
          pair.slice(0, pair.indexOf('=')),
          decodeURIComponent(pair.slice(pair.indexOf('=') + 1)),
        ]),
    ),
  );
export const Tokens = z
  .string()
  .transform(splitList)
  .pipe(z.array(z.string().regex(/^[A-Za-z0-9_-]{32,}$/, 'each must be 32 or more letters, digits, _ or -')));
export const WorkerQueues = z
  .string()
  .transform(splitList)
  .pipe(z.array(z.enum(WORKER_QUEUES, `must be of ${WORKER_QUEUES.join(', ')}, comma-separated`)))
  .refine((names) => new Set(names).size === names.length, 'must not name a queue twice')
  .readonly()
  .default([...WORKER_QUEUES]);
export const Origins = z
  .string()
  .refine(
    (text) => text === '' || splitList(text).every((url) => URL.canParse(url) && new URL(url).origin === url),
    'must be origins such as https://temporal.example.com, comma-separated',
  )
  .default('')
  .transform((text) => (text === '' ? [] : splitList(text)));

/** An origin whose cookies browsers keep to themselves: https, or on this machine. */
export const PublicUrl = z
  .string()
  .refine(
    (text) => URL.canParse(text) && new URL(text).origin === text && isTrustworthy(new URL(text)),
    'must be an origin such as https://api.example.com; http only on loopback',
  );
const isTrustworthy = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));

/** Whether this never leaves the machine. @param host as in a URL */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || isLoopbackAddress(host.replace(/^\[(.+)\]$/, '$1'));

export function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return ['http:', 'https:'].includes(protocol) && username === '' && password === '';
}

/** Proxies' addresses as blocks. A block of everybody would let any client choose its own address. */
export const CidrBlocks = z
  .string()
  .transform(splitList)
  .pipe(
    z.array(
      z
        .string()
        .refine(
          (block) =>
            ipaddr.IPv4.isValidCIDRFourPartDecimal(block) ||
            (ipaddr.IPv6.isValidCIDR(block) && !ipaddr.IPv6.parseCIDR(block)[0].isIPv4MappedAddress()),
          'must be CIDR blocks such as 10.0.0.0/8 or 2001:db8::/32, comma-separated',
        )
        .refine((block) => !/\/0+$/.test(block), 'must not trust every address')
        .transform((block): CidrBlock => ipaddr.parseCIDR(block)),
    ),
  )
  .default([]);
