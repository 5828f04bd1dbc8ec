import assert from 'node:assert/strict';
import type { Mode } from '../../domain/mode.ts';
import { moveRevealsBack, reveal, revealingPartner } from '../support/api/reveals.ts';
import { createCard } from '../support/cards.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { assertKeptNowhere, type Revealed, workflowTexts } from '../support/stored-data.ts';
import { until } from '../support/until.ts';

describe('a revealed card', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let revealed: Revealed[];
  let cardIds: string[];

  before(async () => {
    stack = await startTestStack({ logLevel: 'trace', cardCreationWaitMs: 30_000 });
    partner = await revealingPartner(stack);
    revealed = [];
    cardIds = [];
    const show = async (cardId: string, mode: Mode, status = 200) => {
      const answer = await reveal(partner, cardId, mode);
      assert.equal(answer.status, status, answer.text);
      if (status === 200) revealed.push(answer.json);
    };
    for (const mode of ['test', 'live'] as const) {
      for (const amount of [1_000, 1_044]) {
        const { json } = await createCard(partner, { amount }, { mode });
        cardIds.push(json.id);
        await show(json.id, mode);
        await partner.call('POST', `/cards/${json.id}/freeze`, { mode });
      }
      const last = cardIds.at(-1) ?? '';
      await show(last, mode);
      await show(last, mode, 429);
    }
    // Every way in which a reveal fails late.
    await moveRevealsBack(stack, partner, 60);
    const live = cardIds.at(-1) ?? '';
    await asOwner(stack, 'ALTER TABLE simulated_network.card RENAME TO away');
    await show(live, 'live', 503);
    await asOwner(stack, 'ALTER TABLE simulated_network.away RENAME TO card');
    await asOwner(stack, 'REVOKE INSERT ON card_reveal FROM card_issuing_api');
    await show(live, 'live', 429);
    await asOwner(stack, 'GRANT INSERT ON card_reveal TO card_issuing_api');
    await partner.call('POST', `/cards/${live}/block`, { mode: 'live' });
    await show(live, 'live', 409);
    await until('all live workflows are listed', async () => (await workflowTexts(stack)).size >= 5);
  });
  after(() => stack.stop());

  it('appears in no table, log line or workflow', async () => {
    assert.equal(new Set(revealed.map(({ pan }) => pan)).size, 4);
    await assertKeptNowhere(stack, revealed);
  });

  it('leaves log lines that say that it was revealed, and what went wrong', () => {
    const log = stack.logLines.map((line) => JSON.parse(line));
    const requests = log.filter(({ route }) => route === '/v1/cards/:cardId/secure-details');
    assert.deepEqual(
      Object.entries(Object.groupBy(requests, ({ status }) => status)).map(([status, of]) => [
        status,
        of?.length,
      ]),
      [
        ['200', 6],
        ['409', 1],
        ['429', 3],
        ['503', 1],
      ],
    );
    const warned = (msg: string) => log.filter((line) => line.msg === msg).map(({ error }) => error.summary);
    assert.deepEqual(warned('the card network did not return card details'), [
      'card network: it answered 500; ask again with the same token',
    ]);
    assert.deepEqual(warned('refused a reveal because it could not be counted; check PostgreSQL'), [
      'SQLSTATE 42501',
    ]);
  });
});
