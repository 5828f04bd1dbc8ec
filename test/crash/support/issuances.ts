import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { query } from '../../../db/sql.ts';
import { siblingId } from '../../../domain/ids.ts';
import { issueCardWorkflowId, resolveIssuance } from '../../../workflows/messages.ts';
import type { Answer, TestPartner, TestStack } from '../../support/stack.ts';
import { createCard, eventTypes, networkCardCount, readCardRow } from '../../workflows/support/cards.ts';
import { assertBalance, fundedPartner, priceOf } from '../../workflows/support/money.ts';
import { until } from '../../workflows/support/until.ts';
import type { Case } from './cases.ts';

/** One issuance of a partner of its own, so that its money can be told to the cent. */
export interface Issuance {
  case: Case;
  partner: TestPartner;
  key: string;
  externalRef: string;
}

export async function prepareIssuance(stack: TestStack, kind: Case): Promise<Issuance> {
  const partner = kind.funded ? await fundedPartner(stack) : await stack.createPartner();
  return { case: kind, partner, key: randomUUID(), externalRef: randomUUID() };
}

/** Sends its request to an API process of its own, at `http://host:port`. @throws TypeError where that dies of it */
export async function askAt(
  origin: string,
  { case: kind, partner, key, externalRef }: Issuance,
): Promise<Answer> {
  const response = await fetch(`${origin}/v1/cards`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${partner.keys[kind.mode]}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify({ amount: kind.amountCents, external_ref: externalRef }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
}

/** Sends its request to the stack's own API, the first time or again. */
export function ask({ case: { mode, amountCents }, partner, key, externalRef }: Issuance): Promise<Answer> {
  return createCard(partner, mode, amountCents, { key, externalRef });
}

/** The card's id: it follows from the claim's. */
export async function cardIdOf({ orm }: TestStack, { partner, key }: Issuance): Promise<string> {
  const claim = await until('the claim', async () => {
    const [row] = await query<{ id: string }>(
      orm.em.fork(),
      'SELECT id FROM idempotency_claim WHERE partner_id = $1 AND key = $2',
      [partner.id, key],
    );
    return row;
  });
  return siblingId('card', claim.id);
}

/** Does as the operator does, where the issuance needs one; before it is overdue he can't. */
export async function resolveWhenOverdue(stack: TestStack, issuance: Issuance): Promise<void> {
  const outcome = issuance.case.resolve;
  if (outcome === undefined) return;
  const cardId = await cardIdOf(stack, issuance);
  await until(`${cardId} is overdue`, async () => (await readCardRow(stack, cardId))?.overdue_since);
  await stack.client.workflow.getHandle(issueCardWorkflowId(cardId)).signal(resolveIssuance, { outcome });
}

/** Waits for the workflow's end and holds everything about the issuance to the ending its first answer belongs to. */
export async function assertEnd(stack: TestStack, issuance: Issuance, first: Answer): Promise<void> {
  const { mode, amountCents, funded, resolve, endings } = issuance.case;
  const cardId = await cardIdOf(stack, issuance);
  await stack.client.workflow.getHandle(issueCardWorkflowId(cardId)).result();

  const ending = endings.find(
    ({ status, code }) => status === first.status && code === first.json.error?.code,
  );
  assert.ok(ending, `no ending of this issuance begins with ${first.status} ${first.text}`);
  const again = await ask(issuance);
  assert.deepEqual([again.status, again.text], [first.status, first.text]);
  assert.equal(again.headers.get('Idempotent-Replayed'), 'true');

  assert.equal((await readCardRow(stack, cardId))?.status ?? null, ending.card);
  const cards = await issuance.partner.call('GET', '/cards', { mode });
  assert.deepEqual(
    cards.json.data.map(({ id, status }: { id: string; status: string }) => [id, status]),
    ending.card === null ? [] : [[cardId, ending.card]],
  );
  const told = { active: ['card.issued'], failed: ['card.issue_failed'] };
  assert.deepEqual(await eventTypes(stack, cardId), ending.card === null ? [] : told[ending.card]);
  const isIssuedThere = mode === 'live' && (ending.card === 'active' || resolve !== undefined);
  assert.equal(await networkCardCount(stack, cardId), isIssuedThere ? 1 : 0);
  if (funded) {
    const spentCents = ending.card === 'active' ? priceOf(amountCents) : 0;
    await assertBalance(stack, issuance.partner, mode, { spentCents, heldCents: 0 });
  }
}
