import { z } from 'zod';

/** partner-api.md, "States and transitions"; `failed` is from decisions.md, "Resources". */
export const CardStatus = z.enum(['funding_pending', 'active', 'frozen', 'blocked', 'failed']).meta({
  id: 'CardStatus',
  description:
    '`funding_pending`: being issued. `active`: usable. `frozen`: authorizations decline until you unfreeze it. ' +
    '`blocked`: permanently closed. `failed`: could not be issued; nothing was debited.',
});
export type CardStatus = z.infer<typeof CardStatus>;
