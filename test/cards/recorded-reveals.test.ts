import assert from 'node:assert/strict';
import ipaddr from 'ipaddr.js';
import { updatePartner } from '../../accounts/partners.ts';
import type { Mode } from '../../domain/mode.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError } from '../support/api/answers.ts';
import { issueCard, moveRevealsBack, reveal, revealingPartner } from '../support/api/reveals.ts';
import { createCard } from '../support/cards.ts';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { assertKeptNowhere, type Revealed, workflowTexts } from '../support/stored-data.ts';
import { until } from '../support/until.ts';

describe('a revealed card', () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack({
      logLevel: 'trace',
      cardCreationWaitMs: 30_000,
      trustedProxies: [ipaddr.parseCIDR('127.0.0.0/8')],
    });
  });
  after(() => stack.stop());

  it('is in the audit log with its key and the address it came from, also if it was refused, and the worker chains it', async () => {
    const operate = operateIn(environmentOf(stack.config));
    const partner = await revealingPartner(stack);
    const cardId = await issueCard(partner, 'test');
    const reveal = (id: string) =>
      partner.call('GET', `/cards/${id}/secure-details`, { headers: { 'x-forwarded-for': '203.0.113.9' } });
    const unknownId = newId('card');
    const revealed = await reveal(cardId);
    assert.equal(revealed.status, 200);
    const unknown = await reveal(unknownId);
    expectError(unknown, 'card_not_found');
    expectError(await reveal('no-card%0d%0aid'), 'card_not_found');
    for (let i = 0; i < 2; i++) assert.equal((await reveal(cardId)).status, 200);
    expectError(await reveal(cardId), 'reveal_limit_reached');
    await updatePartner(stack.operator, partner.id, { secureDetailsEnabled: false });
    expectError(await reveal(cardId), 'secure_details_disabled');

    const keys = (await operate('key', 'list', partner.id)).json;
    const keyId = keys.find(({ mode }: { mode: string }) => mode === 'test').id;
    const entries = (await operate('audit', 'list', '--actor', `${partner.id}/${keyId}`)).json.toReversed();
    assert.deepEqual(
      entries.map((entry: { action: string; subject: string; detail: { reason?: string } }) => [
        entry.action,
        entry.subject,
        entry.detail.reason,
      ]),
      [
        ['card.reveal', cardId, undefined],
        ['card.reveal-refused', unknownId, 'card_not_found'],
        ['card.reveal-refused', partner.id, 'card_not_found'],
        ['card.reveal', cardId, undefined],
        ['card.reveal', cardId, undefined],
        ['card.reveal-refused', cardId, 'reveal_limit_reached'],
        ['card.reveal-refused', cardId, 'secure_details_disabled'],
      ],
    );
    for (const { client_address } of entries) assert.equal(client_address, '203.0.113.9');
    for (const [index, { headers }] of [revealed, unknown].entries())
      assert.equal(entries[index].detail.request_id, headers.get('request-id'));

    await until('the worker has chained everything', async () => {
      const { waiting, whole } = (await operate('audit', 'verify')).json;
      return whole && waiting === 0;
    });
  });

  it('is in the audit log up to 60 times in a minute if it was refused, so that a flood does not fill that', async () => {
    const operate = operateIn(environmentOf(stack.config));
    const partner = await stack.createPartner();
    await Promise.all(
      Array.from({ length: 5 }, async () => {
        for (let i = 0; i < 15; i++)
          expectError(
            await partner.call('GET', `/cards/${newId('card')}/secure-details`),
            'secure_details_disabled',
          );
      }),
    );
    const { length } = (await operate('audit', 'list', '--actor', partner.id)).json;
    // Requests at the same moment don't see each other.
    assert.ok(length >= 60 && length < 65, `${length} are recorded`);
  });

  describe('also if a reveal fails late,', () => {
    let partner: TestPartner;
    let revealed: Revealed[];
    let cardIds: string[];
    let logged: number;

    before(async () => {
      logged = stack.logLines.length;
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

    it('appears in no table, log line or workflow', async () => {
      assert.equal(new Set(revealed.map(({ pan }) => pan)).size, 4);
      await assertKeptNowhere(stack, revealed);
    });

    it('leaves log lines that say that it was revealed, and what went wrong', () => {
      const log = stack.logLines.slice(logged).map((line) => JSON.parse(line));
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
      const warned = (msg: string) =>
        log.filter((line) => line.msg === msg).map(({ error }) => error.summary);
      assert.deepEqual(warned('the card network did not return card details'), [
        'card network: it answered 500; ask again with the same token',
      ]);
      assert.deepEqual(warned('refused a reveal because it could not be counted; check PostgreSQL'), [
        'SQLSTATE 42501',
      ]);
    });
  });
});
