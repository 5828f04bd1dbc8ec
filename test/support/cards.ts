import { randomUUID } from 'node:crypto';
import type { CardRow } from '../../cards/resource.ts';
import { query } from '../../platform/db/sql.ts';
import { asOwner } from './postgres.ts';
import type { Answer, CallOptions, TestPartner, TestStack } from './stack.ts';
import { until } from './until.ts';

/** POST /cards, with a new key and external_ref unless given. In live mode the amount's last two digits choose the outcome. */
export function createCard(
  partner: TestPartner,
  body: { amount: unknown; external_ref?: string; [field: string]: unknown },
  options: Omit<CallOptions, 'body'> = {},
): Promise<Answer> {
  return partner.call('POST', '/cards', {
    idempotencyKey: randomUUID(),
    ...options,
    body: { external_ref: randomUUID(), ...body },
  });
}

/** A live card once it is not pending any more, as GET /cards/{cardId} returns it. */
// biome-ignore lint/suspicious/noExplicitAny: a card as the API returns it.
export function settledCard(partner: TestPartner, cardId: string): Promise<any> {
  return until(`${cardId} is not pending`, async () => {
    const { json } = await partner.call('GET', `/cards/${cardId}`, { mode: 'live' });
    return json.status !== 'funding_pending' && json;
  });
}

/** Gives a live card in use a wrong id at the network, and keeps the worker from looking it up again. */
export async function mistakeNetworkCard(stack: TestStack, cardId: string): Promise<void> {
  await asOwner(
    stack,
    `UPDATE card SET network_card_id = 'mistyped/' || id, last4 = NULL, exp_month = NULL, exp_year = NULL,
       look_up_after = now() + interval '1 day' WHERE id = $1`,
    [cardId],
  );
}

export async function readCardRow({ orm }: TestStack, cardId: string): Promise<CardRow | undefined> {
  const [row] = await query<CardRow>(orm.em.fork(), 'SELECT * FROM card WHERE id = $1', [cardId]);
  return row;
}

export async function eventTypes({ orm }: TestStack, cardId: string): Promise<string[]> {
  const rows = await query<{ type: string }>(
    orm.em.fork(),
    'SELECT type FROM event WHERE card_id = $1 ORDER BY id',
    [cardId],
  );
  return rows.map(({ type }) => type);
}

/** How many cards the simulated network has made for one of ours. */
export async function networkCardCount({ orm }: TestStack, cardId: string): Promise<number> {
  const rows = await query(orm.em.fork(), 'SELECT FROM simulated_network.card WHERE token = $1', [cardId]);
  return rows.length;
}
