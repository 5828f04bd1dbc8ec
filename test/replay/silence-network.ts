import pg from 'pg';
import { asOwner } from '../support/api/as-owner.ts';
import type { TestStack } from '../support/stack.ts';
import { readCardRow } from '../support/workflows/cards.ts';

/** Lets the simulated network answer nothing but 500 about a card, until what is returned is called. */
export async function silenceNetwork(stack: TestStack, cardId: string): Promise<() => Promise<unknown>> {
  const table = 'ALTER TABLE simulated_network.operation';
  const networkCardId = pg.escapeLiteral((await readCardRow(stack, cardId))?.network_card_id ?? '');
  await asOwner(
    stack,
    `${table} ADD CONSTRAINT silent_${cardId} CHECK (request ->> 'networkCardId' <> ${networkCardId}) NOT VALID`,
  );
  return () => asOwner(stack, `${table} DROP CONSTRAINT silent_${cardId}`);
}
