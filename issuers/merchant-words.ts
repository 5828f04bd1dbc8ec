import { Label } from '../domain/fields.ts';

/** Made once: a reconciliation reads a million texts. */
const Words = Label(255);

/**
 * What a network says of a merchant. A text that can't be shown, such as one with control characters, must not
 * keep the money from being booked.
 */
export const words = (text: string | null | undefined): string | null =>
  Words.safeParse(text?.trim()).data ?? null;
