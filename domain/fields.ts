import { z } from 'zod';
import { MAX_AMOUNT_CENTS } from './money.ts';

/** The field that says what kind of object this is. */
export const ObjectType = <Name extends string>(name: Name) =>
  z.literal(name).describe(`The kind of object: always \`${name}\`.`);

export const Usd = z.literal('USD').describe('The currency: always `USD`.');

/** Integer cents, `least` to `most`. */
export const amountBetween = (least: number, most: number) => {
  const inRange = `must be between ${least} and ${most}`;
  return z
    .int({ error: ({ code }) => (code === 'invalid_type' ? 'must be an integer number of cents' : inRange) })
    .min(least, inRange)
    .max(most, inRange);
};

/** Integer cents, 1 to 2^53 − 1 (docs/partners/money-fees-and-limits.md). */
export const AmountCents = amountBetween(1, MAX_AMOUNT_CENTS);

/** An id that the card network assigned. */
export const NetworkId = z
  .string({ error: 'must be a string' })
  .regex(/^[\x21-\x7e]{1,100}$/, 'must be 1 to 100 printable ASCII characters without spaces');

// Control characters; characters that are invisible or change the direction of text (\p{Cf} of the basic
// plane, and the line and paragraph separators); lone surrogates. They are written out because the OpenAPI
// document has them too, and not every tool that reads it knows \p.
const UNSEEN =
  '\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e\\u200b\\u200e\\u200f' +
  '\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\ud800-\\udfff';
// What is left of Unicode's Default_Ignorable_Code_Point in the basic plane: joiners and variation selectors,
// which emoji and names in Persian, Hindi or Mongolian need, and fillers.
const IGNORABLE =
  '\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180d\\u180f\\u200c\\u200d\\u3164\\ufe00-\\ufe0f\\uffa0\\ufff0-\\ufff8';

const ALL_UNSEEN = new RegExp(`[${UNSEEN}]`, 'gu');

/**
 * A text of the card network's as it can be stored and shown: PostgreSQL takes neither U+0000 nor half of a
 * surrogate pair.
 */
export const printable = (text: string): string => text.replace(ALL_UNSEEN, '?');

const NOT_PLAIN =
  'must not contain control characters, invisible characters, or characters that change the direction of text';

/** @param minLength 0 or 1 */
const Plain = (minLength: number, maxLength: number, pattern: RegExp) =>
  z
    .string({ error: 'must be a string' })
    .refine((text) => text.length >= minLength, 'must not be empty')
    .refine(
      (text) => text.length <= maxLength || [...text].length <= maxLength,
      `must be at most ${maxLength} characters long`,
    )
    .refine((text) => text.isWellFormed(), 'must be well-formed Unicode')
    .regex(pattern, NOT_PLAIN)
    .meta({ minLength, maxLength });

/**
 * A string for machines, such as a reference: two that look the same are the same. Its length counts code
 * points.
 */
export const Line = (maxLength: number) =>
  Plain(1, maxLength, new RegExp(`^[^${UNSEEN}${IGNORABLE}]*$`, 'u')).refine(
    // Those of the other planes are not in the pattern: tools disagree about how to write them.
    (text) => !/\p{Default_Ignorable_Code_Point}/u.test(text),
    NOT_PLAIN,
  );

/**
 * A name for people, on one line, in any script, of which something can be seen. Its length counts code
 * points.
 */
export const Label = (maxLength: number) =>
  Plain(1, maxLength, new RegExp(`^[^${UNSEEN}]*$`, 'u')).refine(
    (text) => text === '' || /[^\p{Default_Ignorable_Code_Point}\p{Z}]/u.test(text),
    'must contain a visible character',
  );

/** Text for people that may be empty. Its length counts code points. */
export const Note = (maxLength: number) => Plain(0, maxLength, new RegExp(`^[^${UNSEEN}]*$`, 'u'));

/**
 * What a browser accepts in `<input type="email">`, so domains in other scripts as A-labels (`xn--…`), in the
 * lengths of RFC 5321 (docs/partners/cards.md).
 */
export const Email = z
  .email({
    error: 'must be a valid email address',
    pattern: new RegExp(z.regexes.html5Email.source.replace('^', '^(?=[^@]{1,64}@)')),
  })
  .max(254, 'must be at most 254 characters long');

const NOT_A_TIME = 'must be an ISO 8601 timestamp with a time zone, such as 2026-11-20T08:00:00.000Z';

/** A point in time, with its time zone. */
export const Timestamp = z
  .string()
  .check((ctx) => {
    // The seconds may be left out.
    const text = ctx.value.replace(/(T\d\d:\d\d)(?=Z|[+-])/, '$1:00');
    if (z.iso.datetime({ offset: true }).safeParse(text).success) return;
    const lostPlus = /^\S+ \d\d:\d\d$/.test(text)
      ? ': in a query, + stands for a space, so write it as %2B'
      : '';
    ctx.issues.push({ code: 'custom', message: `${NOT_A_TIME}${lostPlus}`, input: ctx.value });
  })
  .transform((text) => new Date(text))
  .meta({ type: 'string', format: 'date-time' });
