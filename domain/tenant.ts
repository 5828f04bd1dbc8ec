import type { Mode } from './mode.ts';

/** Whose rows a statement may see: an account, in one mode. */
export interface Tenant {
  partnerId: string;
  mode: Mode;
}
