import assert from 'node:assert/strict';
import { transaction } from '../../platform/db/transaction.ts';
import { recordAudit } from '../../requests/operator-context.ts';
import { reveal, revealingPartner } from '../support/api/reveals.ts';
import { createCard } from '../support/cards.ts';
import { column } from '../support/column.ts';
import { seedDeposit } from '../support/deposits/seed-deposits.ts';
import { fundedPartner } from '../support/money.ts';
import { ACTOR, type Operate, operateIn, operatorEnvironment } from '../support/operator/operate.ts';
import { operatorUrlOf } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';

describe('operator audit list', () => {
  let operate: Operate;

  before(async () => {
    operate = operateIn(await operatorEnvironment());
    await operate('partner', 'create', '--name', 'First');
    await operate('partner', 'create', '--name', 'Second');
  });

  const names = async (...since: string[]) => {
    const { code, json } = await operate('audit', 'list', ...since);
    assert.equal(code, 0);
    return json.map((entry: { detail: { name: string } }) => entry.detail.name);
  };

  it('says who changed what and when, newest first', async () => {
    const { json } = await operate('audit', 'list');
    const fields =
      'id object at actor action subject partner_id partner_name external_ref last4 detail ' +
      'operator os_user host database_login client_address';
    assert.deepEqual(Object.keys(json[0]), fields.split(' '));
    assert.match(json[0].id, /^aud_/);
    assert.ok(json[0].at > json[1].at);
    assert.deepEqual(await names(), ['Second', 'First']);
  });

  it('accepts --since as a timestamp with its zone, a date or an age', async () => {
    const { at } = (await operate('audit', 'list')).json[0];
    assert.deepEqual(await names('--since', at), ['Second']);
    assert.deepEqual(await names('--since', at.replace('Z', '+00:00')), ['Second']);
    assert.deepEqual(await names('--since', '2026-01-01'), ['Second', 'First']);
    assert.deepEqual(await names('--since', '24h'), ['Second', 'First']);
    assert.deepEqual(await names('--since', '2999-01-01T00:00:00Z'), []);
    assert.deepEqual(await names('--since', '9999-12-31T23:59:59-12:00'), []);
  });

  it('filters by --subject and --actor', async () => {
    const [{ subject }] = (await operate('audit', 'list')).json;
    assert.deepEqual(await names('--subject', subject), ['Second']);
    assert.deepEqual(await names('--subject', 'prt_nobody'), []);
    assert.deepEqual(await names('--actor', ACTOR), ['Second', 'First']);
    assert.deepEqual(await names('--actor', ACTOR, '--subject', subject, '--since', '1h'), ['Second']);
    assert.deepEqual(await names('--actor', 'somebody@else'), []);
  });
});

describe('operator audit list beside an API', () => {
  let stack: TestStack;
  let operate: Operate;
  before(async () => {
    stack = await sharedStack('api');
    operate = operateIn({ DATABASE_URL: operatorUrlOf(stack.config.databaseUrl) });
  });

  it("lists partners' reveals among operators' changes, with actor, card, time and request, and no digit of the card", async () => {
    const partner = await revealingPartner(stack);
    const card = await createCard(partner, { amount: 1_000 });
    const answers = [await reveal(partner, card.json.id), await reveal(partner, card.json.id)];
    await operate('partner', 'update', partner.id, '--secure-details', 'off');
    await reveal(partner, card.json.id);

    const keys = (await operate('key', 'list', partner.id)).json;
    const keyId = keys.find(({ mode }: { mode: string }) => mode === 'test').id;
    const { json, out } = await operate('audit', 'list');
    const [refused, off, second, first, on] = json;
    assert.deepEqual(
      [refused.action, refused.detail.reason],
      ['card.reveal-refused', 'secure_details_disabled'],
    );
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
        partner_id: partner.id,
        partner_name: 'Test Partner',
        external_ref: card.json.external_ref,
        last4: card.json.last4,
        detail: { mode: 'test', request_id: answers[index]?.headers.get('request-id') },
        ...{ operator: null, os_user: null, host: null, database_login: null },
        client_address: '127.0.0.1',
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
      assert.deepEqual(await idsWith(...flags), [refused.id, second.id, first.id]);
    assert.deepEqual(await idsWith('--actor', `${partner.id}/key_other`), []);
    const since = await operate('audit', 'list', '--since', second.at);
    assert.deepEqual(column(since.json, 'id'), [refused.id, off.id, second.id]);
  });

  it('names the partner and the card that each entry is about', async () => {
    const partner = await fundedPartner(stack);
    const { json: card } = await createCard(partner, { amount: 1_000, external_ref: 'order-4711' });
    const post = async (path: string, idempotencyKey: string, body: object) =>
      (await partner.call('POST', path, { idempotencyKey, body })).json;
    const topUp = await post(`/cards/${card.id}/topups`, 'top-up', { amount: 500 });
    const purchase = { type: 'purchase', amount: 100 };
    const bought = await post(`/test/cards/${card.id}/simulate-transaction`, 'purchase', purchase);
    const event = (await partner.call('GET', '/events')).json.data[0];
    const deposit = await seedDeposit(stack, partner.id);
    const [key] = (await operate('key', 'list', partner.id)).json;
    const ofCard = [partner.id, 'Test Partner', 'order-4711', card.last4];
    const ofPartner = [partner.id, 'Test Partner', null, null];
    const expected: Record<string, (string | null)[]> = {
      ...{ [card.id]: ofCard, [topUp.id]: ofCard, [bought.id]: ofCard, [event.id]: ofCard },
      ...{ [partner.id]: ofPartner, [key.id]: ofPartner, [deposit]: ofPartner },
      ...{ 'VISA-USD': [null, null, null, null] },
    };
    await transaction(stack.operator.orm, async (tx) => {
      for (const subject of Object.keys(expected))
        recordAudit(tx, { actor: 'namer@here', action: 'something.done', subject, detail: {} });
    });

    const { json } = await operate('audit', 'list', '--actor', 'namer@here');
    const names = json.map((entry: Record<string, string | null>) => [
      entry.subject,
      [entry.partner_id, entry.partner_name, entry.external_ref, entry.last4],
    ]);
    assert.deepEqual(Object.fromEntries(names), expected);
    assert.equal(json.length, Object.keys(expected).length);
  });
});
