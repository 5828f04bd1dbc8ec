import assert from 'node:assert/strict';
import { expectError } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { balanceOf, fundedPartner } from '../../support/money.ts';
import { createTestDatabase } from '../../support/postgres.ts';
import { startTcpProxy, type TcpProxy } from '../../support/sockets.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';

describe('the API while PostgreSQL is away', () => {
  let proxy: TcpProxy;
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    const url = new URL(await createTestDatabase());
    proxy = await startTcpProxy(url.host);
    url.host = proxy.address;
    stack = await startTestStack({ databaseUrl: url.href, cardCreationWaitMs: 30_000 });
    partner = await fundedPartner(stack, 10_000);
    assert.deepEqual(await balanceOf(partner), [10_000, 0, 10_000]);
  });
  after(async () => {
    await stack.stop();
    await proxy.cut();
  });

  it('answers 503 on every route, keeps nothing under a key, and recovers when it is back', async () => {
    await proxy.cut();
    const create = () => createCard(partner, { amount: 1_000, external_ref: 'r' }, { idempotencyKey: 'k' });
    for (const path of [
      '/balance',
      '/products',
      '/cards',
      '/funding/deposits',
      `/cards/card_${'0'.repeat(26)}`,
    ]) {
      expectError(await partner.call('GET', path), 'unavailable');
    }
    expectError(await create(), 'unavailable');
    expectError(
      await partner.call('POST', '/test/credit', { body: { amount: 1 }, idempotencyKey: 'c' }),
      'unavailable',
    );
    expectError(
      await partner.call('POST', '/quotes', { body: { type: 'card_issue', amount: 1 } }),
      'unavailable',
    );
    // A 401 would say that the key is no good.
    const stranger = await partner.call('GET', '/ping', { mode: 'live' });
    expectError(stranger, 'unavailable');
    await proxy.restore();

    const answer = await create();
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.get('idempotent-replayed'), null);
    assert.deepEqual(await balanceOf(partner), [8_850, 0, 8_850]);
  });
});
