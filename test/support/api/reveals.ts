import { updatePartner } from '../../../accounts/partners.ts';
import type { Mode } from '../../../domain/mode.ts';
import { createCard } from '../cards.ts';
import { fundedPartner } from '../money.ts';
import { asOwner } from '../postgres.ts';
import type { Answer, TestPartner, TestStack } from '../stack.ts';

export async function revealingPartner(stack: TestStack): Promise<TestPartner> {
  const partner = await fundedPartner(stack, 1_000_000);
  await updatePartner(stack.operator, partner.id, { secureDetailsEnabled: true });
  return partner;
}

export async function issueCard(partner: TestPartner, mode: Mode, body: object = {}): Promise<string> {
  return (await createCard(partner, { amount: 1_000, ...body }, { mode })).json.id;
}

export function reveal(partner: TestPartner, cardId: string, mode: Mode = 'test'): Promise<Answer> {
  return partner.call('GET', `/cards/${cardId}/secure-details`, { mode });
}

/** Lets time pass for the account's reveals so far. */
export async function moveRevealsBack(
  stack: TestStack,
  partner: TestPartner,
  seconds: number,
): Promise<void> {
  await asOwner(
    stack,
    `UPDATE card_reveal SET created_at = created_at - $2::integer * interval '1 second' WHERE partner_id = $1`,
    [partner.id, seconds],
  );
}

/** How many attempts count. */
export async function revealCount(stack: TestStack, partner: TestPartner, mode: Mode): Promise<number> {
  const rows = await asOwner(stack, 'SELECT FROM card_reveal WHERE partner_id = $1 AND mode = $2', [
    partner.id,
    mode,
  ]);
  return rows.length;
}
