import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { Scope } from '../accounts/scope-rules.ts';
import { LAST_MS } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import { Label } from '../domain/fields.ts';
import { IpAllowlist } from '../domain/ip-address.ts';
import { Mode } from '../domain/mode.ts';
import { MAX_AMOUNT_CENTS } from '../domain/money.ts';
import { parseJson } from '../domain/parse-json.ts';
import { completeControls, SpendingControlsRequest } from '../domain/spending-controls.ts';
import { parseDuration } from '../platform/config/duration.ts';
import { splitList } from '../platform/config/values.ts';

/** Makes commander's parser of a flag or an argument. A flag that is given twice is refused. */
export function read<T>(schema: z.ZodType<T>): (text: string, previous?: T) => T {
  return (text, previous) => {
    if (previous !== undefined) throw new InvalidArgumentError('must be given only once');
    const parsed = schema.safeParse(text);
    if (parsed.success) return parsed.data;
    throw new InvalidArgumentError(parsed.error.issues.map((issue) => issue.message).join(', '));
  };
}

/** {@link read} for an argument that may be given several times. */
export function readEach<T>(schema: z.ZodType<T>): (text: string, previous?: T[]) => T[] {
  const readOne = read(schema);
  return (text, previous = []) => [...previous, readOne(text)];
}

/** Refuses a flag in the place of a value: the value was forgotten. */
export const Text = (maxLength: number) =>
  Label(maxLength).refine((text) => !text.startsWith('--'), 'must not start with --');

export const ModeName = z.enum(Mode.options, 'must be test or live');

/** One mode, or both. */
export const ModeNames = z
  .enum([...Mode.options, 'both'], 'must be test, live or both')
  .transform((name): readonly Mode[] => (name === 'both' ? Mode.options : [name]));

export const OnOff = z.enum(['on', 'off'], 'must be on or off').transform((text) => text === 'on');

/** A whole number that `schema` accepts. */
export const WholeNumber = (schema: z.ZodType<number, number>) =>
  z
    .string()
    .regex(/^\d{1,16}$/, 'must be a whole number')
    .transform(Number)
    .pipe(schema);

/** Spending controls as JSON, as partners send them (docs/partners/spending-controls.md). */
export const ControlsJson = z.string().transform((text, ctx) => {
  try {
    const parsed = SpendingControlsRequest.safeParse(parseJson(Buffer.from(text)));
    if (parsed.success) return completeControls(parsed.data);
    for (const { path, message } of parsed.error.issues)
      ctx.addIssue([path.join('.'), message].join(' ').trim());
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    ctx.addIssue('must be valid JSON');
  }
  return z.NEVER;
});

export const SignedCents = z
  .string()
  .regex(/^[+-]?\d{1,16}$/, 'must be a whole number of cents, such as 500 or -500')
  .transform(Number)
  .refine((cents) => cents !== 0, 'must not be 0')
  .refine((cents) => Math.abs(cents) <= MAX_AMOUNT_CENTS, `must be at most ${MAX_AMOUNT_CENTS}`);

const Timestamp = z.union([z.iso.datetime({ offset: true }), z.iso.date()]);

/**
 * A point in time: an ISO 8601 timestamp with its zone, a date (UTC), or a duration before now, also in days.
 * Never before 1970 or after 9999.
 */
export const Since = z.string().transform((text, ctx) => {
  const days = /^(\d{1,9})d$/.exec(text)?.[1];
  const agoMs = days === undefined ? parseDuration(text) : Number(days) * 86_400_000;
  if (agoMs !== undefined) return new Date(Math.max(0, Date.now() - agoMs));
  if (Timestamp.safeParse(text).success) return new Date(Math.min(Math.max(0, Date.parse(text)), LAST_MS));
  ctx.addIssue('must be a duration, date or timestamp, such as 24h, 7d, 2026-11-20 or 2026-11-20T08:00:00Z');
  return z.NEVER;
});

/** Names of scopes, comma-separated. */
export const ScopeNames = z
  .string()
  .transform(splitList)
  .pipe(z.array(z.enum(Scope.options, `must be scopes, comma-separated: ${Scope.options.join(', ')}`)))
  .transform((names) => Scope.options.filter((scope) => names.includes(scope)));

/** Addresses and CIDR blocks, comma-separated. */
export const IpBlocks = z.string().transform(splitList).pipe(IpAllowlist);

/** A timestamp with its zone, or a date (UTC). */
export const At = z.string().transform((text, ctx) => {
  if (Timestamp.safeParse(text).success && Date.parse(text) <= LAST_MS) return new Date(text);
  ctx.addIssue(
    'must be a date or timestamp, such as 2026-11-20 or 2026-11-20T08:00:00Z, and not after the year 9999',
  );
  return z.NEVER;
});

/** A product's name in requests and on the command line. */
export const ProductCode = z
  .string()
  .regex(/^(?!--)[!-~]([ -~]{0,98}[!-~])?$/, 'must be 1 to 100 printable ASCII characters');

export const ProductBin = z.string().regex(/^\d{6,8}$/, 'must be 6 to 8 digits');
