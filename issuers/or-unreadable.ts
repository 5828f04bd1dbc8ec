import { z } from 'zod';

/**
 * An object of the network, or what is left of one that this release can't read, so that it doesn't keep all
 * others from being compared. An object that doesn't even have what is left fails.
 * @param left its id, and what else is read of such an object
 */
export function orUnreadable<Body, Left extends object>(
  shape: z.ZodType<Body>,
  left: z.ZodType<Left>,
): z.ZodType<Body | (Left & { unreadable: string[] })> {
  return z.unknown().transform((value, context) => {
    const whole = shape.safeParse(value);
    if (whole.success) return whole.data;
    const rest = left.safeParse(value);
    if (!rest.success) {
      context.addIssue({ code: 'custom', message: 'is an object without an id' });
      return z.NEVER;
    }
    const fields = whole.error.issues.map(({ path }) => path.join('.').slice(0, 100) || 'body');
    return { ...rest.data, unreadable: [...new Set(fields)].slice(0, 10) };
  });
}
