import assert from 'node:assert/strict';
import { createHostResolver } from '../../../../webhooks/client/checked-socket.ts';
import { withClient } from '../../../support/adapters/webhooks/clients.ts';
import { startNameServer, type Zone } from '../../../support/adapters/webhooks/name-server.ts';

const V6 = '2606:4700:4700:0:0:0:0:1111';

const ZONE: Zone = {
  'both.example': { v4: ['1.1.1.1', '1.0.0.1'], v6: [V6] },
  'old.example': { v4: ['1.1.1.1'] },
  'new.example': { v6: [V6] },
  'empty.example': {},
  'inside.example': { v4: ['1.1.1.1'], v6: ['0:0:0:0:0:0:0:1'] },
  'dead.example': 'never',
};

describe('the DNS resolver', () => {
  let server: Awaited<ReturnType<typeof startNameServer>>;

  before(async () => {
    server = await startNameServer(ZONE);
  });
  after(() => server.close());

  it('gives all addresses with IPv4 first', async () => {
    const resolve = createHostResolver([server.address]);
    const both = await resolve('both.example');
    assert.deepEqual(
      [both.slice(0, 2).sort(), both.slice(2)],
      [['1.0.0.1', '1.1.1.1'], ['2606:4700:4700::1111']],
    );
    assert.deepEqual(await resolve('old.example'), ['1.1.1.1']);
    assert.deepEqual(await resolve('new.example'), ['2606:4700:4700::1111']);
  });

  it('fails for a name without addresses and for one that does not exist', async () => {
    const resolve = createHostResolver([server.address]);
    for (const name of ['empty.example', 'missing.example']) {
      await assert.rejects(resolve(name), new RegExp(`${name} has no address`));
    }
  });

  it('is not held up by any number of names whose server never answers', async () => {
    const resolve = createHostResolver([server.address]);
    const ended: string[] = [];
    const look = (name: string) =>
      resolve(name).then(
        () => ended.push(name),
        () => ended.push(name),
      );
    const dead = Array.from({ length: 20 }, () => look('dead.example'));
    await look('old.example');
    assert.deepEqual(ended, ['old.example']);
    await Promise.all(dead);
    assert.equal(ended.length, 21);
  });

  it('gives the client the addresses of both families to check', async () => {
    const openSocket = () => assert.fail('connected');
    const options = { resolve: createHostResolver([server.address]), openSocket, timeoutMs: 5_000 };
    const result = await withClient(options, (post) => post('https://inside.example/'));
    assert.equal(result.error, 'address_not_allowed');
  });
});
