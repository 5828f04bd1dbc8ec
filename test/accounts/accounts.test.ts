import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { expectError } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { balanceOf, fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

const MODES = ['test', 'live'] as const;

describe('GET /ping', () => {
  let partner: TestPartner;
  before(async () => {
    partner = await (await sharedStack()).createPartner('Größe & Co.');
  });

  for (const mode of MODES) {
    it(`names the key's account and ${mode} mode`, async () => {
      const { status, json } = await partner.call('GET', '/ping', { mode });
      assert.equal(status, 200);
      assert.deepEqual(json, { ok: true, partner_id: partner.id, partner_name: 'Größe & Co.', mode });
    });
  }

  it('answers HEAD with the same headers and no body', async () => {
    const { config } = await sharedStack();
    const [head, get] = await Promise.all(
      ['HEAD', 'GET'].map((method) =>
        fetch(`http://${config.host}:${config.port}/v1/ping`, {
          method,
          headers: { authorization: `Bearer ${partner.keys.test}` },
        }),
      ),
    );
    assert.equal(head?.status, 200);
    assert.equal(await head?.text(), '');
    assert.equal(head?.headers.get('content-length'), get?.headers.get('content-length'));
  });

  it('refuses query parameters', async () => {
    expectError(await partner.call('GET', '/ping?verbose=1'), 'validation_failed', ['verbose']);
  });
});

describe('GET /balance', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });

  it('answers zeros in both modes before anything has happened', async () => {
    partner = await stack.createPartner();
    for (const mode of MODES) {
      assert.deepEqual((await partner.call('GET', '/balance', { mode })).json, {
        ...{ object: 'balance', mode, currency: 'USD' },
        ...{ available: 0, held: 0, total: 0 },
      });
    }
  });

  it('keeps the balances of the modes apart', async () => {
    partner = await fundedPartner(stack, 5_000);
    await partner.call('POST', '/test/credit', { body: { amount: 700 }, idempotencyKey: randomUUID() });
    assert.deepEqual(await balanceOf(partner, 'test'), [5_700, 0, 5_700]);
    assert.deepEqual(await balanceOf(partner, 'live'), [5_000, 0, 5_000]);
  });

  it('shows what a pending issuance holds, and available and held add up to the total', async () => {
    partner = await fundedPartner(stack, 20_000);
    const pending = await createCard(partner, { amount: 10_047 }, { mode: 'live' });
    assert.equal(pending.status, 202, pending.text);
    const debited = 10_047 + 100 + 201;
    assert.deepEqual(await balanceOf(partner, 'live'), [20_000 - debited, debited, 20_000]);
    assert.deepEqual(await balanceOf(partner, 'test'), [20_000, 0, 20_000]);
  });
});
