import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { testTemporal } from '../support/temporal.ts';
import { expectError } from './support/expect-error.ts';
import { startTcpProxy, type TcpProxy } from './support/tcp-proxy.ts';

describe('while Temporal is away', () => {
  let proxy: TcpProxy;
  let stack: TestStack;
  let partner: TestPartner;

  before(async () => {
    const { address, namespace } = await testTemporal();
    proxy = await startTcpProxy(address);
    // Longer than the test may take: an answer that comes at all then comes before it.
    const cardCreationWaitMs = 120_000;
    stack = await startTestStack(
      { temporal: { connectionOptions: { address: proxy.address }, namespace }, cardCreationWaitMs },
      { worker: false },
    );
    partner = await stack.createPartner();
    const credited = await partner.call('POST', '/test/credit', {
      body: { amount: 10_000 },
      idempotencyKey: randomUUID(),
    });
    assert.equal(credited.status, 201);
  });
  after(async () => {
    await stack.stop();
    await proxy.cut();
  });

  const create = (idempotencyKey: string) =>
    partner.call('POST', '/cards', { body: { amount: 1_000, external_ref: idempotencyKey }, idempotencyKey });

  it('POST /cards answers 503, the first time and at once again, and the retry gets the true answer later', async () => {
    await proxy.cut();
    expectError(await create('r-1'), 'unavailable');
    expectError(await create('r-1'), 'unavailable');
    for (const path of ['/ping', '/balance', '/products', '/cards']) {
      assert.equal((await partner.call('GET', path)).status, 200, path);
    }
    expectError(
      await partner.call('POST', '/cards', {
        body: { amount: 2_000, external_ref: 'other' },
        idempotencyKey: 'r-1',
      }),
      'idempotency_conflict',
    );
    await proxy.restore();
    await stack.startWorker();

    // The worker's sweep may have taken the claim up already: then this is the replay of what came of it.
    let answer = await create('r-1');
    while (answer.status === 503 || answer.status === 409) answer = await create('r-1');
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.json.external_ref, 'r-1');
    const again = await create('r-1');
    assert.equal(again.text, answer.text);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');

    const cards = await partner.call('GET', '/cards');
    assert.deepEqual(cards.json.data, [answer.json]);
    const balance = await partner.call('GET', '/balance');
    assert.deepEqual([balance.json.available, balance.json.held], [10_000 - 1_150, 0]);
  });
});
