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

// Control characters; characters that are invisible or change the direction of text (\p{Cf} of the basic plane, and the line
// and paragraph separators); lone surrogates. They are written out because the OpenAPI document has them too, and not every
// tool that reads it knows \p. The joiners U+200C and U+200D are separate: Persian and Hindi names need them, and so do
// emoji.
const UNSEEN =
  '\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e\\u200b\\u200e\\u200f' +
  '\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\ud800-\\udfff';
const JOINERS = '\\u200c\\u200d';

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
    .regex(
      pattern,
      'must not contain control characters, invisible characters, or characters that change the direction of text',
    )
    .meta({ minLength, maxLength });

/** A string for machines, such as a reference: two that look the same are the same. Its length counts code points. */
export const Line = (maxLength: number) => Plain(1, maxLength, new RegExp(`^[^${UNSEEN}${JOINERS}]*$`, 'u'));

/** A name for people, on one line, in any script. Its length counts code points. */
export const Label = (maxLength: number) => Plain(1, maxLength, new RegExp(`^[^${UNSEEN}]*$`, 'u'));

/** A {@link Label} that may be empty. */
export const Note = (maxLength: number) => Plain(0, maxLength, new RegExp(`^[^${UNSEEN}]*$`, 'u'));

export const Email = z.email({ error: 'must be a valid email address' }).max(254);
