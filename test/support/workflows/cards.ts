import { randomUUID } from 'node:crypto';
import { query } from '../../../db/sql.ts';
import type { Mode } from '../../../domain/mode.ts';
import type { CardRow } from '../../../resources/card.ts';
import type { Answer, TestPartner, TestStack } from '../stack.ts';

/** Asks for a card; the last two digits of the amount choose live mode's outcome. */
export function createCard(
  partner: TestPartner,
  mode: Mode,
  amountCents: number,
  { key = randomUUID(), externalRef = randomUUID() }: { key?: string; externalRef?: string } = {},
): Promise<Answer> {
  const body = { amount: amountCents, external_ref: externalRef };
  return partner.call('POST', '/cards', { mode, body, idempotencyKey: key });
}

export async function readCardRow({ orm }: TestStack, cardId: string): Promise<CardRow | undefined> {
  const [row] = await query<CardRow>(orm.em.fork(), 'SELECT * FROM card WHERE id = $1', [cardId]);
  return row;
}

/** Types of the events of a card, oldest first. */
export async function eventTypes({ orm }: TestStack, cardId: string): Promise<string[]> {
  const rows = await query<{ type: string }>(
    orm.em.fork(),
    'SELECT type FROM event WHERE card_id = $1 ORDER BY id',
    [cardId],
  );
  return rows.map(({ type }) => type);
}

/** How many cards the simulated network has made for a card of ours. */
export async function networkCardCount({ orm }: TestStack, cardId: string): Promise<number> {
  const rows = await query(orm.em.fork(), 'SELECT FROM simulated_network.card WHERE token = $1', [cardId]);
  return rows.length;
}
