import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { pino } from 'pino';
import { startApi } from '../../api/server.ts';
import { expectError } from '../support/api/answers.ts';
import { post } from '../support/api/post.ts';
import { createCard } from '../support/cards.ts';
import { TEST_TRON } from '../support/deposits/seed-deposits.ts';
import { balanceOf, fundedPartner } from '../support/money.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { testServers } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/sockets.ts';
import { startTestStack, type TestPartner, type TestStack, testConfig } from '../support/stack.ts';

let postgres: TcpProxy;
let temporal: TcpProxy;
let stack: TestStack;
let partner: TestPartner;
before(async () => {
  const { address, namespace } = testServers().temporal;
  temporal = await startTcpProxy(address);
  const url = new URL(await createTestDatabase());
  postgres = await startTcpProxy(url.host);
  url.host = postgres.address;
  stack = await startTestStack(
    {
      databaseUrl: url.href,
      temporal: { connectionOptions: { address: temporal.address }, namespace },
      // Longer than the test may take: an answer that comes at all then comes before it.
      cardCreationWaitMs: 120_000,
      tron: TEST_TRON,
    },
    { worker: false },
  );
});
beforeEach(async () => {
  partner = await fundedPartner(stack, 10_000);
});
after(async () => {
  await stack.stop();
  await temporal.cut();
  await postgres.cut();
});

describe('the API while PostgreSQL is away', () => {
  it('answers 503 on every route, keeps nothing under a key, and recovers when it is back', async () => {
    assert.deepEqual(await balanceOf(partner), [10_000, 0, 10_000]);
    await postgres.cut();
    const create = () => createCard(partner, { amount: 1_000, external_ref: 'r' }, { idempotencyKey: 'k' });
    for (const path of ['/balance', '/cards', '/funding/deposits', `/cards/card_${'0'.repeat(26)}`])
      expectError(await partner.call('GET', path), 'unavailable');
    expectError(await create(), 'unavailable');
    const credit = { body: { amount: 1 }, idempotencyKey: 'c' };
    expectError(await partner.call('POST', '/test/credit', credit), 'unavailable');
    // A 401 would say that the key is no good.
    expectError(await partner.call('GET', '/ping', { mode: 'live' }), 'unavailable');
    await postgres.restore();

    const answer = await create();
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.get('idempotent-replayed'), null);
    assert.deepEqual(await balanceOf(partner), [8_850, 0, 8_850]);
  });
});

describe('an API that starts while PostgreSQL is silent', () => {
  it('waits for everything that it needs of it at the same time, and starts without it', async () => {
    const held: Socket[] = [];
    let connections = 0;
    let isAway = false;
    let givenUp = 0;
    // It cuts the first connection, and answers none of the next ones until the last pool asks for one.
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', (startup) => {
        if (startup.includes('card-issuing-reports')) {
          isAway = true;
          for (const one of held) one.destroy();
        }
        connections += 1;
        if (connections === 1 || isAway) socket.destroy();
        else held.push(socket);
      });
      socket.once('close', () => {
        if (held.includes(socket) && !isAway) givenUp += 1;
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const config = await testConfig({ databaseUrl: `postgres://nobody:@127.0.0.1:${port}/none` });
    const api = await startApi(config, pino({ level: 'silent' }));
    await api.stop();
    server.close();
    assert.ok(held.length > 0);
    assert.equal(givenUp, 0, 'nothing waited for another one to be given up');
  });
});

describe('the API while Temporal is away', () => {
  it('serves what starts no workflow: all of test mode, deposit addresses and reads', async () => {
    await temporal.cut();
    const { id } = await post(partner, '/cards', { amount: 1_000, external_ref: 'sandbox' });
    await post(partner, '/test/credit', { amount: 5_000 });
    await post(partner, `/cards/${id}/topups`, { amount: 500 });
    await post(partner, `/cards/${id}/freeze`);
    await post(partner, `/cards/${id}/unfreeze`);
    await post(partner, `/test/cards/${id}/simulate-transaction`, { type: 'purchase', amount: 300 });
    assert.equal((await post(partner, `/cards/${id}/block`)).status, 'blocked');
    // Fees: 100 and 50 of the issuance, 50 of the top-up, 10 and half a percent of the purchase.
    assert.deepEqual(await balanceOf(partner), [14_488, 0, 14_488]);
    // No node of the chain answers either.
    const deposit = await post(partner, '/funding/deposit-address', { amount: 2_500 }, 'live');
    assert.equal(deposit.status, 'awaiting_payment');
    for (const path of ['/balance', '/cards'])
      assert.equal((await partner.call('GET', path, { mode: 'live' })).status, 200, path);
    // What it does later is in test/crash/temporal-away.test.ts.
    expectError(await createCard(partner, { amount: 1_000 }, { mode: 'live' }), 'unavailable');
    await temporal.restore();
  });
});
