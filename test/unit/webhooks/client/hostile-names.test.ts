import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import type { openSocket } from '../../../../webhooks/client/checked-socket.ts';
import { DeliveryFailure } from '../../../../webhooks/client/delivery-result.ts';
import { HOST, leadTo, PUBLIC, withClient } from '../../../support/adapters/webhooks/clients.ts';
import { answering, startCanary, startReceiver } from '../../../support/adapters/webhooks/receivers.ts';

const PUBLIC_IPV6 = '2606:4700:4700::1111';

/** What a hostile name server may answer. Which addresses are public is in test/unit/domain/public-address.test.ts. */
const ANSWERS: [what: string, addresses: string[]][] = [
  ['loopback', ['127.0.0.1']],
  ['loopback in IPv6', ['::1']],
  ["the cloud's metadata service", ['169.254.169.254']],
  ['a link-local address with its zone', ['fe80::1%eth0']],
  ['a public address with a zone', [`${PUBLIC_IPV6}%lo`]],
  ['a public address mapped into IPv6', [`::ffff:${PUBLIC}`]],
  ['good addresses and then a bad one', [PUBLIC, PUBLIC_IPV6, '127.0.0.1']],
  ['a bad address first', ['127.0.0.1', PUBLIC]],
  ['a bad address after more than are tried', [...Array.from({ length: 50 }, () => PUBLIC), '10.0.0.1']],
  ['another name, like an alias', ['localhost']],
  ['a number', ['2130706433']],
  ['an address in brackets', ['[::1]']],
  ['an address and a port', [`${PUBLIC}:80`]],
  ['an empty address', ['']],
];

describe('a host name', () => {
  for (const [what, addresses] of ANSWERS) {
    it(`is refused if it resolves to ${what}`, async () => {
      await using canary = await startCanary();
      for (const network of [{}, { openSocket: leadTo(canary.port) }]) {
        const options = { ...network, resolve: async () => addresses, timeoutMs: 5_000 };
        const result = await withClient(options, (post) => post(`https://${HOST}:${canary.port}/`));
        assert.deepEqual([result.outcome, result.error], ['failed', 'address_not_allowed']);
      }
      await canary.assertUntouched();
    });
  }
});

describe('a DNS lookup', () => {
  it('happens once for each connection, so an answer that changes in between has no effect', async () => {
    await using canary = await startCanary();
    await using receiver = await startReceiver(answering(200));
    const answers = [[PUBLIC], ['127.0.0.1']];
    const connected: string[] = [];
    const options = {
      resolve: async () => answers.shift() ?? [],
      openSocket: leadTo(receiver.port, { connected, plain: true }),
    };
    await withClient(options, async (post) => {
      const url = `https://${HOST}:${canary.port}/`;
      assert.equal((await post(url)).outcome, 'delivered');
      assert.deepEqual([connected, answers], [[PUBLIC], [['127.0.0.1']]]);
      assert.equal((await post(`${url}again`)).error, 'address_not_allowed');
      assert.deepEqual([connected, answers, receiver.connections], [[PUBLIC], [], 1]);
      await canary.assertUntouched();
    });
  });

  it('is not repeated if an address is unreachable, because the next one that it gave is tried', async () => {
    await using receiver = await startReceiver(answering(200));
    const reach = leadTo(receiver.port, { plain: true });
    const tried: string[] = [];
    let lookUps = 0;
    const options = {
      resolve: async () => {
        lookUps += 1;
        return ['1.1.1.1', '8.8.8.8', PUBLIC];
      },
      openSocket: ((target) => {
        tried.push(target.address);
        if (target.address === '1.1.1.1') return Promise.reject(new DeliveryFailure('connection_refused'));
        if (target.address === '8.8.8.8') return Promise.reject(new DeliveryFailure('timeout'));
        return reach(target);
      }) satisfies typeof openSocket,
    };
    const result = await withClient(options, (post) => post(`https://${HOST}/`));
    assert.equal(result.outcome, 'delivered');
    assert.deepEqual([tried, lookUps], [['1.1.1.1', '8.8.8.8', PUBLIC], 1]);
    assert.ok(tried.every((address) => isIP(address) !== 0));
  });

  it('gives at most four addresses to try', async () => {
    const tried: string[] = [];
    const addresses = ['1.1.1.1', '1.1.1.2', '1.1.1.3', '1.1.1.4', '1.1.1.5'];
    const options = {
      resolve: async () => addresses,
      openSocket: (async ({ address }) => {
        tried.push(address);
        throw new DeliveryFailure('connection_refused');
      }) satisfies typeof openSocket,
    };
    const result = await withClient(options, (post) => post(`https://${HOST}/`));
    assert.deepEqual([result.error, tried], ['connection_refused', addresses.slice(0, 4)]);
  });

  it('fails the attempt if it finds nothing, fails or takes too long', async () => {
    const never = new Promise<string[]>(() => {});
    for (const [resolve, error] of [
      [async () => [], 'dns_failed'],
      [async () => Promise.reject(new Error('ENOTFOUND')), 'dns_failed'],
      [() => never, 'timeout'],
    ] as const) {
      const result = await withClient({ resolve, timeoutMs: 300 }, (post) => post(`https://${HOST}/`));
      assert.deepEqual([result.outcome, result.error], ['failed', error]);
    }
  });

  it('opens no connection if it ends after the deadline', async () => {
    const { promise, resolve } = Promise.withResolvers<string[]>();
    const connected: string[] = [];
    const options = { resolve: () => promise, openSocket: leadTo(9, { connected }), timeoutMs: 200 };
    await withClient(options, async (post) => {
      assert.equal((await post(`https://${HOST}/`)).error, 'timeout');
      resolve([PUBLIC]);
      await new Promise(setImmediate);
      assert.deepEqual(connected, []);
    });
  });

  it('is not made for localhost, which is this machine whatever a name server says', async () => {
    await using receiver = await startReceiver(answering(200));
    const resolve = () => assert.fail('looked up');
    const result = await withClient({ resolve }, (post) => post(`http://localhost:${receiver.port}/`));
    assert.equal(result.outcome, 'delivered');
  });
});
