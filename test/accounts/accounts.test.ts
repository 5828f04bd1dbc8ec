import assert from 'node:assert/strict';
import { createCard } from '../support/cards.ts';
import { balanceOf, fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';

const MODES = ['test', 'live'] as const;

describe('an account', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack();
  });

  it("is named by GET /ping with the key's mode, and HEAD has the same headers without a body", async () => {
    const { id, keys, call } = await stack.createPartner('Größe & Co.');
    for (const mode of MODES) {
      const { status, json } = await call('GET', '/ping', { mode });
      assert.equal(status, 200);
      assert.deepEqual(json, { ok: true, partner_id: id, partner_name: 'Größe & Co.', mode });
    }
    const url = `http://${stack.config.host}:${stack.config.port}/v1/ping`;
    const head = await fetch(url, { method: 'HEAD', headers: { authorization: `Bearer ${keys.test}` } });
    assert.deepEqual([head.status, await head.text()], [200, '']);
    const get = await call('GET', '/ping');
    assert.equal(head.headers.get('content-length'), get.headers.get('content-length'));
  });

  it('has zeros in both modes before anything has happened', async () => {
    const { call } = await stack.createPartner();
    for (const mode of MODES) {
      assert.deepEqual((await call('GET', '/balance', { mode })).json, {
        ...{ object: 'balance', mode, currency: 'USD' },
        ...{ available: 0, held: 0, total: 0 },
      });
    }
  });

  it('holds what a pending issuance costs, so that available and held add up to the total, in its mode alone', async () => {
    const partner = await fundedPartner(stack, 20_000);
    await partner.call('POST', '/test/credit', { body: { amount: 700 }, idempotencyKey: 'k' });
    const pending = await createCard(partner, { amount: 10_047 }, { mode: 'live' });
    assert.equal(pending.status, 202, pending.text);
    const debited = 10_047 + 100 + 201;
    assert.deepEqual(await balanceOf(partner, 'live'), [20_000 - debited, debited, 20_000]);
    assert.deepEqual(await balanceOf(partner, 'test'), [20_700, 0, 20_700]);
  });
});
