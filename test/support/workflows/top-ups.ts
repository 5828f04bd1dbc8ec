import { randomUUID } from 'node:crypto';
import { topUpColumns } from '../../../db/columns.ts';
import { query } from '../../../db/sql.ts';
import type { Mode } from '../../../domain/mode.ts';
import type { TopUpRow } from '../../../resources/topup.ts';
import type { Answer, TestPartner, TestStack } from '../stack.ts';

/** Asks for a top-up; the last two digits of the amount choose live mode's outcome. */
export function createTopUp(
  partner: TestPartner,
  mode: Mode,
  cardId: string,
  amountCents: number,
  key: string = randomUUID(),
): Promise<Answer> {
  const body = { amount: amountCents };
  return partner.call('POST', `/cards/${cardId}/topups`, { mode, body, idempotencyKey: key });
}

export async function readTopUpRow({ orm }: TestStack, topUpId: string): Promise<TopUpRow | undefined> {
  const [row] = await query<TopUpRow>(
    orm.em.fork(),
    `SELECT ${topUpColumns('t')} FROM topup t WHERE t.id = $1`,
    [topUpId],
  );
  return row;
}
