import { z } from 'zod';
import { MAX_AMOUNT_CENTS } from './money.ts';

const IN_RANGE = `must be from 1 to ${MAX_AMOUNT_CENTS}`;

/** Integer cents, 1 to 2^53 − 1 (decisions.md, "Envelope"). */
export const AmountCents = z
  .int({
    error: ({ code }) => (code === 'invalid_type' ? 'must be an integer number of cents' : IN_RANGE),
  })
  .min(1, IN_RANGE)
  .max(MAX_AMOUNT_CENTS, IN_RANGE);

/** What the card network calls something of its own. */
export const NetworkId = z
  .string({ error: 'must be a string' })
  .regex(/^[\x21-\x7e]{1,100}$/, 'must be 1 to 100 printable ASCII characters without spaces');

/** Text that a database, a log line and a card can carry: well-formed Unicode without control characters. */
export const Line = (maxLength: number) =>
  z
    .string({ error: 'must be a string' })
    .min(1, 'must not be empty')
    .max(maxLength, `must have at most ${maxLength} characters`)
    .refine((text) => text.isWellFormed(), 'must be well-formed Unicode')
    .refine((text) => !/\p{Cc}/u.test(text), 'must not contain control characters');
