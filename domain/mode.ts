import { z } from 'zod';

/** Test and live share code and tables; a mode is part of every key (partner-api.md, "Authentication"). */
export const Mode = z.enum(['test', 'live']).meta({
  id: 'Mode',
  description: 'Whether this is test or live data. It follows from the API key.',
});
export type Mode = z.infer<typeof Mode>;

/** Whose rows a statement may see: an account, in one mode. */
export interface Tenant {
  partnerId: string;
  mode: Mode;
}
