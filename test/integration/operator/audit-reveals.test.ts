import assert from 'node:assert/strict';
import { reveal, revealingPartner } from '../../support/api/reveals.ts';
import { createCard } from '../../support/cards.ts';
import { operateIn } from '../../support/operator/operate.ts';
import { operatorUrlOf } from '../../support/postgres.ts';
import { startTestStack, type TestStack } from '../../support/stack.ts';

describe('operator audit list', () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack();
  });
  after(() => stack.stop());

  it("lists partners' reveals among operators' changes, with actor, card, time and request, and no digit of the card", async () => {
    const operate = operateIn({ DATABASE_URL: operatorUrlOf(stack.config.databaseUrl) });
    const partner = await revealingPartner(stack);
    const card = await createCard(partner, { amount: 1_000 });
    const answers = [await reveal(partner, card.json.id), await reveal(partner, card.json.id)];
    await operate('partner', 'update', partner.id, '--secure-details', 'off');
    await reveal(partner, card.json.id);

    const keys = (await operate('key', 'list', partner.id)).json;
    const keyId = keys.find(({ mode }: { mode: string }) => mode === 'test').id;
    const { json, out } = await operate('audit', 'list');
    const [off, second, first, on] = json;
    assert.deepEqual([off.action, off.detail.after.secureDetailsEnabled], ['partner.update', false]);
    assert.deepEqual([on.action, on.detail.after.secureDetailsEnabled], ['partner.update', true]);
    for (const [index, entry] of [first, second].entries()) {
      const { id, at, ...rest } = entry;
      assert.match(id, /^rvl_/);
      assert.ok(at >= on.at && at <= off.at, at);
      assert.deepEqual(rest, {
        object: 'audit_entry',
        actor: `${partner.id}/${keyId}`,
        action: 'card.reveal',
        subject: card.json.id,
        detail: { mode: 'test', request_id: answers[index]?.headers.get('request-id') },
      });
    }
    assert.ok(!out.includes(answers[0]?.json.pan));
    const idsWith = async (...flags: string[]) =>
      (await operate('audit', 'list', ...flags)).json.map(({ id }: { id: string }) => id);
    for (const flags of [
      ['--subject', card.json.id],
      ['--actor', partner.id],
      ['--actor', `${partner.id}/${keyId}`],
    ])
      assert.deepEqual(await idsWith(...flags), [second.id, first.id]);
    assert.deepEqual(await idsWith('--actor', `${partner.id}/key_other`), []);
    const since = await operate('audit', 'list', '--since', second.at);
    assert.deepEqual(
      since.json.map(({ id }: { id: string }) => id),
      [off.id, second.id],
    );
  });
});
