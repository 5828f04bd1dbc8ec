import { z } from 'zod';

/** partner-api.md, "States and transitions"; `failed` is from decisions.md, "Resources". */
export const CardStatus = z.enum(['funding_pending', 'active', 'frozen', 'blocked', 'failed']);
export type CardStatus = z.infer<typeof CardStatus>;
