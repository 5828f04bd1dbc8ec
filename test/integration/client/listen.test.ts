import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { webhooks } from '../../../client/index.ts';
import { createApiKey, revokeApiKey } from '../../../commands/accounts/api-keys.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import { startTcpProxy } from '../../support/sockets.ts';
import type { TestPartner } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

const CLI = fileURLToPath(new URL('../../../client/cli.ts', import.meta.url));

interface Listener {
  child: ChildProcess;
  output(): string;
  ended: Promise<number | null>;
  printed(pattern: RegExp): Promise<string>;
}

describe("the client's command listen", function () {
  this.timeout(60_000);
  let baseUrl: string;
  let partner: TestPartner;
  let receiver: Receiver;
  const running: Listener[] = [];

  before(async () => {
    const { config } = await sharedStack();
    baseUrl = `http://${config.host}:${config.port}/v1`;
  });
  beforeEach(async () => {
    partner = await (await sharedStack()).createPartner();
    receiver = await startReceiver();
    await partner.call('POST', '/test/credit', { body: { amount: 100_000 }, idempotencyKey: 'credit' });
  });
  afterEach(async () => {
    for (const { child } of running.splice(0)) child.kill('SIGKILL');
    await receiver.stop();
  });

  function run(args: string[], env: Record<string, string> = {}): Listener {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', CLI, ...args], {
      env: { CARD_ISSUING_API_KEY: partner.keys.test, CARD_ISSUING_BASE_URL: baseUrl, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (output += text));
    const listener: Listener = {
      child,
      output: () => output,
      ended: once(child, 'close').then(([code]) => code),
      async printed(pattern) {
        await until(`it prints ${pattern}`, () => pattern.test(output));
        return pattern.exec(output)?.[1] ?? '';
      },
    };
    running.push(listener);
    return listener;
  }

  const listen = async (...args: string[]) => {
    const listener = run(['listen', '--forward-to', receiver.url, ...args]);
    const secret = await listener.printed(/^Signing secret: (whsec_\S+)\n/m);
    return { ...listener, secret };
  };

  /** @returns the card's id. Each card is one event. */
  async function issueCard(ref: string): Promise<string> {
    const body = { amount: 100, external_ref: ref };
    const { json } = await partner.call('POST', '/cards', { body, idempotencyKey: ref });
    assert.equal(json.object, 'card', JSON.stringify(json));
    return json.id;
  }

  const cardsReceived = (one = receiver) => one.received.map(({ body }) => JSON.parse(body).data.card.id);

  it('posts each new event once, oldest first, with the body and the signature of a webhook', async () => {
    const endpoint = await startReceiver();
    try {
      await partner.call('PUT', '/webhook-endpoint', { body: { url: endpoint.url } });
      await issueCard('before');
      await until('the earlier card is announced', () => endpoint.received.length === 1);
      const { secret } = await listen();
      const cards: string[] = [];
      for (const ref of ['1', '2', '3']) cards.push(await issueCard(ref));
      await until('all are posted', () => receiver.received.length === 3 && endpoint.received.length === 4);
      assert.deepEqual(cardsReceived(), cards);
      for (const { id, body, headers } of receiver.received) {
        assert.equal(webhooks.verify(body, headers, secret).id, id);
        assert.equal(headers['x-service-event-id'], id);
        assert.equal(body, endpoint.attempts(id)[0]?.body);
      }
    } finally {
      await endpoint.stop();
    }
  });

  it('prints a line for each event with the status of the answer, and does not try again', async () => {
    receiver.behave((_request, response, number) => response.writeHead(number === 0 ? 500 : 204).end());
    const { printed } = await listen();
    await issueCard('1');
    await printed(/^\S+Z evt_\w{26} card\.issued -> 500, \d+ ms$/m);
    await issueCard('2');
    await printed(/^\S+Z evt_\w{26} card\.issued -> 204, \d+ ms$/m);
    assert.equal(receiver.received.length, 2);
    await receiver.stop();
    await issueCard('3');
    await printed(/card\.issued -> no response \(ECONNREFUSED\)/);
  });

  it('posts only the types it was asked for', async () => {
    await listen('--types', 'card.frozen,card.blocked');
    const card = await issueCard('1');
    for (const change of ['freeze', 'unfreeze', 'block'])
      await partner.call('POST', `/cards/${card}/${change}`);
    await until('both are posted', () => receiver.received.length === 2);
    assert.deepEqual(
      receiver.received.map(({ body }) => JSON.parse(body).type),
      ['card.frozen', 'card.blocked'],
    );
  });

  it('posts the events since a time, and prints what to pass as --since when it is stopped', async () => {
    const first = await issueCard('1');
    const { json } = await partner.call('GET', `/cards/${first}`);
    const one = await listen('--since', json.created);
    await until('the first is posted', () => receiver.received.length === 1);
    one.child.kill('SIGINT');
    assert.equal(await one.ended, 0);
    const [, since = ''] = /pass --since (evt_\w{26})$/m.exec(one.output()) ?? [];
    assert.equal(since, receiver.received[0]?.id);

    const second = await issueCard('2');
    await listen('--since', since);
    await until('the second is posted', () => receiver.received.length === 2);
    assert.deepEqual(cardsReceived(), [first, second]);
  });

  it('loses no event if it is killed and started again after the last one that it printed', async () => {
    const cards: string[] = [];
    let isIssuing = true;
    const issuing = (async () => {
      for (let number = 0; isIssuing; number += 1) {
        cards.push(await issueCard(`card-${number}`));
        // Below the rate limit.
        await sleep(50);
      }
    })();
    let since = new Date(0).toISOString();
    for (let round = 0; round < 4; round += 1) {
      const before = receiver.received.length;
      const listener = await listen('--since', since);
      await until('some are posted', () => receiver.received.length > before + 5);
      listener.child.kill('SIGKILL');
      await listener.ended;
      since = [...listener.output().matchAll(/^\S+ (evt_\w{26}) .* -> /gm)].at(-1)?.[1] ?? since;
    }
    isIssuing = false;
    await issuing;
    await listen('--since', since);
    await until('each card is posted', () => new Set(cardsReceived()).size === cards.length);
    assert.deepEqual([...new Set(cardsReceived())], cards);
    // What was posted and not yet printed when it was killed comes twice.
    assert.ok(receiver.received.length <= cards.length + 4);
  });

  it('goes on after the API could not be reached, without losing an event', async () => {
    const proxy = await startTcpProxy(new URL(baseUrl).host);
    const listener = run(['listen', '--forward-to', receiver.url], {
      CARD_ISSUING_BASE_URL: `http://${proxy.address}/v1`,
    });
    await listener.printed(/^(Signing secret: )/m);
    const cards = [await issueCard('1')];
    await until('the first is posted', () => receiver.received.length === 1);
    await proxy.cut();
    await listener.printed(/^(Trying again: )/m);
    cards.push(await issueCard('2'));
    await proxy.restore();
    cards.push(await issueCard('3'));
    await until('all are posted', () => receiver.received.length === 3);
    assert.deepEqual(cardsReceived(), cards);
    await proxy.cut();
  });

  it('ends with a message and status 1 if the key is revoked', async () => {
    const { operator } = await sharedStack();
    const { id, key } = await createApiKey(operator, { partnerId: partner.id, mode: 'test', name: null });
    const listener = run(['listen', '--forward-to', receiver.url], { CARD_ISSUING_API_KEY: key });
    await listener.printed(/^(Signing secret: )/m);
    await revokeApiKey(operator, id);
    assert.equal(await listener.ended, 1);
    assert.match(listener.output(), /^Stopped: .*API key/m);
  });

  it('ends with a message and status 1 for a key that is none', async () => {
    const key = `sk_test_${'x'.repeat(40)}`;
    const listener = run(['listen', '--forward-to', receiver.url], { CARD_ISSUING_API_KEY: key });
    assert.equal(await listener.ended, 1);
    assert.match(listener.output(), /^Stopped: .*API key/m);
    assert.ok(!listener.output().includes(key));
  });

  it('explains itself with --help', async () => {
    const { ended, output } = run(['listen', '--help']);
    assert.equal(await ended, 0);
    for (const word of [
      '--forward-to',
      '--types',
      '--since',
      'CARD_ISSUING_API_KEY',
      'CARD_ISSUING_BASE_URL',
    ])
      assert.ok(output().includes(word), word);
  });

  const WRONG: [string, string[], number, RegExp][] = [
    ['no URL', ['listen'], 2, /--forward-to must be/],
    ['a URL that is none', ['listen', '--forward-to', 'localhost:4242'], 2, /--forward-to must be/],
    ['another command', ['follow', '--forward-to', 'http://localhost:4242'], 2, /The command is: listen/],
    ['an unknown option', ['listen', '--forward'], 2, /--forward/],
    [
      'a time that is none',
      ['listen', '--forward-to', 'http://localhost:1', '--since', 'yesterday'],
      2,
      /--since/,
    ],
    ['an unknown type', ['listen', '--forward-to', 'http://localhost:1', '--types', 'card.lost'], 1, /type/],
  ];
  for (const [what, args, status, message] of WRONG) {
    it(`refuses ${what}`, async () => {
      const { ended, output } = run(args);
      assert.equal(await ended, status);
      assert.match(output(), message);
    });
  }
});
