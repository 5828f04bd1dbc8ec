import { z } from 'zod';

/** Test and live share code and tables; the mode is part of every key (docs/partners/keys-and-modes.md). */
export const Mode = z.enum(['test', 'live']).meta({
  id: 'Mode',
  description: 'Whether this is test or live data. The API key determines it.',
});
export type Mode = z.infer<typeof Mode>;

/** Whose rows a statement may see: one account's, in one mode. */
export interface Tenant {
  partnerId: string;
  mode: Mode;
}
