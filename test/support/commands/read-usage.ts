import { query } from '../../../db/sql.ts';
import type { Mode } from '../../../domain/mode.ts';
import type { TestCommands } from './open-commands.ts';

/** Open cards and loaded cents of an account in one mode. */
export async function readUsage({ context }: TestCommands, partnerId: string, mode: Mode): Promise<number[]> {
  const [usage] = await query<{ open: number; loaded: string }>(
    context.orm.em.fork(),
    'SELECT open_cards AS open, loaded_cents AS loaded FROM account_usage WHERE partner_id = $1 AND mode = $2',
    [partnerId, mode],
  );
  return [usage?.open ?? -1, Number(usage?.loaded)];
}
