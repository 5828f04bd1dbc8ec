import assert from 'node:assert/strict';
import ipaddr from 'ipaddr.js';
import { updatePartner } from '../../accounts/partners.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError } from '../support/api/answers.ts';
import { issueCard, revealingPartner } from '../support/api/reveals.ts';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe('a reveal in the audit log', () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack({ trustedProxies: [ipaddr.parseCIDR('127.0.0.0/8')] });
  });
  after(() => stack.stop());

  it('has its key and the address it came from, also if it was refused, and the worker chains it', async () => {
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

  it('is recorded up to 60 times in a minute if it is refused, so that a flood does not fill the log', async () => {
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
});
