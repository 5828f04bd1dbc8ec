import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { withNewKey } from '../support/api/keys.ts';
import { post } from '../support/api/post.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { environmentOf, type Operate, operateIn } from '../support/operator/operate.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

const live = { mode: 'live' } as const;

describe('operator request find', () => {
  let stack: TestStack;
  let operate: Operate;
  let partner: TestPartner;
  let keyIds: Record<'test' | 'live', string>;

  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
    const { json } = await operate('key', 'list', partner.id);
    const idOf = (mode: string) => json.find((key: { mode: string }) => key.mode === mode).id;
    keyIds = { test: idOf('test'), live: idOf('live') };
  });

  const find = async (...args: string[]) => {
    const { code, json, err } = await operate('request', 'find', ...args);
    assert.equal(code, 0, err);
    return json;
  };

  for (const mode of ['test', 'live'] as const) {
    it(`says what a ${mode} request did, when, by which key and from where, by its Idempotency-Key and its request id`, async () => {
      const key = randomUUID();
      const card = await createCard(partner, { amount: 10_000 }, { mode, idempotencyKey: key });
      assert.equal(card.status, 201, card.text);
      const requestId = card.headers.get('request-id') ?? '';
      const [found, ...others] = await find('--idempotency-key', key);
      assert.deepEqual(others, []);
      const { id, created, ...rest } = found;
      assert.match(id, /^claim_/);
      assert.equal(created, new Date(created).toISOString());
      assert.deepEqual(rest, {
        object: 'request',
        request_id: requestId,
        idempotency_key: key,
        partner_id: partner.id,
        partner_name: 'Test Partner',
        mode,
        operation: 'create_card',
        resource_id: card.json.id,
        card_id: null,
        response_status: 201,
        by_operator: false,
        api_key_id: keyIds[mode],
        client_address: '127.0.0.1',
      });
      assert.deepEqual(await find('--request-id', requestId), [found]);
    });
  }

  it('keeps the first key and request id of a request that another key repeats', async () => {
    const second = await withNewKey(stack, partner);
    const key = randomUUID();
    const card = { external_ref: randomUUID(), amount: 1_000 };
    const first = await createCard(partner, card, { idempotencyKey: key });
    const again = await createCard(second, card, { idempotencyKey: key });
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    const [found] = await find('--idempotency-key', key);
    assert.deepEqual([found.request_id, found.api_key_id], [first.headers.get('request-id'), keyIds.test]);
    assert.deepEqual(await find('--request-id', again.headers.get('request-id') ?? ''), []);
  });

  it('lists every account that used an Idempotency-Key, in each mode, and --partner narrows it', async () => {
    const other = await fundedPartner(stack);
    const key = `order-${randomUUID()}`;
    for (const [who, options] of [
      [partner, {}],
      [partner, live],
      [other, {}],
    ] as const) {
      await createCard(who, { amount: 1_000 }, { ...options, idempotencyKey: key });
    }
    const all = await find('--idempotency-key', key);
    const whose = all.map((one: { partner_id: string; mode: string }) => [one.partner_id, one.mode]);
    assert.deepEqual(whose, [
      [other.id, 'test'],
      [partner.id, 'live'],
      [partner.id, 'test'],
    ]);
    const narrowed = await find('--idempotency-key', key, '--partner', partner.id);
    assert.deepEqual(narrowed, all.slice(1));
  });

  it('shows a refusal, which made nothing, with its status', async () => {
    const key = randomUUID();
    const refused = await createCard(partner, { amount: 1_000_000 }, { idempotencyKey: key });
    assert.equal(refused.status, 402, refused.text);
    const [found] = await find('--idempotency-key', key);
    assert.deepEqual([found.response_status, found.resource_id], [402, null]);
  });

  it('lists what a key did since a time, newest first, with status changes and reveals', async () => {
    await operate('partner', 'update', partner.id, '--secure-details', 'on');
    const { id } = (await createCard(partner, { amount: 10_000 }, live)).json;
    const topUp = await post(partner, `/cards/${id}/topups`, { amount: 500 }, 'live');
    await partner.call('POST', `/cards/${id}/freeze`, live);
    await partner.call('GET', `/cards/${id}/secure-details`, live);
    await createCard(partner, { amount: 1_000 });

    const all = await find('--key', keyIds.live, '--since', '1h');
    const did = all.map((one: Record<string, string>) => [one.operation, one.resource_id, one.card_id]);
    assert.deepEqual(did, [
      ['reveal_card', null, id],
      ['freeze_card', null, id],
      ['top_up_card', topUp.id, id],
      ['create_card', id, null],
    ]);
    assert.ok(all.every((one: { client_address: string }) => one.client_address === '127.0.0.1'));
    assert.deepEqual((await find('--request-id', all[0].request_id)).length, 1);
  });
});
