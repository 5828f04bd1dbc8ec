import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createApiKey, revokeApiKey } from '../../../accounts/api-keys.ts';
import { webhooks } from '../../../client/index.ts';
import { writePrivateFile } from '../../../dev/process/files.ts';
import { dataFolder } from '../../../dev/stack/data-folder.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import { scratchFolder } from '../../support/dev/scratch.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import { type LoopbackServer, listenOnLoopback } from '../../support/sockets.ts';
import type { TestPartner } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

const CLI = fileURLToPath(new URL('../../../client/cli.ts', import.meta.url));
const LOCAL = fileURLToPath(new URL('../../../dev/listen.ts', import.meta.url));

interface Listener {
  child: ChildProcess;
  output(): string;
  ended: Promise<number | null>;
  printed(pattern: RegExp): Promise<string>;
}

interface Puppet extends LoopbackServer {
  events: string[];
  /** The responses to the next lists of up to 100 events; null for what the API would say. */
  replies: (((response: ServerResponse) => void) | null)[];
  /** The `starting_after` of each list of up to 100 events. */
  cursors: (string | null)[];
}

async function startPuppet(): Promise<Puppet> {
  const events: string[] = [];
  const replies: Puppet['replies'] = [];
  const cursors: Puppet['cursors'] = [];
  const server = await listenOnLoopback((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://localhost');
    const limit = Number(searchParams.get('limit'));
    const cursor = searchParams.get('starting_after');
    if (limit === 100) {
      cursors.push(cursor);
      const reply = replies.shift();
      if (reply) return reply(response);
    }
    const older = events
      .toSorted()
      .reverse()
      .filter((id) => cursor === null || id < cursor);
    const ids = older.slice(0, limit);
    const shown = {
      object: 'event',
      type: 'ping',
      created: new Date().toISOString(),
      mode: 'test',
      data: {},
    };
    const data = ids.map((id) => ({ id, ...shown }));
    const hasMore = older.length > limit;
    const page = { object: 'list', data, has_more: hasMore, next_cursor: hasMore ? ids.at(-1) : null };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(page));
  });
  return { ...server, events, replies, cursors };
}

const secondsAgo = (seconds: number): string => newId('evt', new Date(Date.now() - seconds * 1_000));

const refuse = (status: number, code: string) => (response: ServerResponse) =>
  response
    .writeHead(status)
    .end(JSON.stringify({ error: { type: 'api', code, message: `It is ${code}.`, request_id: 'req_1' } }));

describe("the client's command listen", () => {
  let baseUrl: string;
  let partner: TestPartner;
  let receiver: Receiver;
  let puppet: Puppet;
  const running: Listener[] = [];
  const scratch = scratchFolder();

  before(async () => {
    const { config } = await sharedStack();
    baseUrl = `http://${config.host}:${config.port}/v1`;
  });
  beforeEach(async () => {
    partner = await (await sharedStack()).createPartner();
    receiver = await startReceiver();
    puppet = await startPuppet();
    await partner.call('POST', '/test/credit', { body: { amount: 100_000 }, idempotencyKey: 'credit' });
  });
  afterEach(async () => {
    for (const { child } of running.splice(0)) child.kill('SIGKILL');
    await receiver.stop();
    await puppet.close();
  });

  function run(args: string[], env: Record<string, string> = {}, program = CLI): Listener {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...args], {
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

  const listenToPuppet = (...args: string[]): Listener =>
    run(['listen', '--forward-to', receiver.url, ...args], { CARD_ISSUING_BASE_URL: `${puppet.url}/v1` });

  /** Stops it with Ctrl-C. @returns what it says to pass as --since */
  async function stopped({ child, ended, output }: Listener): Promise<string> {
    child.kill('SIGINT');
    assert.equal(await ended, 0, output());
    return /^To go on from here, pass --since (\S+)$/m.exec(output())?.[1] ?? assert.fail(output());
  }

  const idsReceived = () => receiver.received.map(({ id }) => id);

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

  it('posts an older event that appears late before the newer one', async () => {
    const [start, older, newer] = [secondsAgo(60), secondsAgo(3), secondsAgo(2)] as const;
    puppet.events.push(start, newer);
    puppet.replies.push(null, (response) => {
      puppet.events.push(older);
      refuse(503, 'unavailable')(response);
    });
    listenToPuppet('--since', start);
    await until('both are posted', () => receiver.received.length === 2);
    assert.deepEqual(idsReceived(), [older, newer]);
  });

  it('goes on without losing an event that appears after it was stopped, and is older than one that was posted', async () => {
    const [start, old, late, recent] = [90, 60, 3, 2].map(secondsAgo) as [string, string, string, string];
    puppet.events.push(start, old, recent);
    const one = listenToPuppet('--since', start);
    await until('both are posted', () => receiver.received.length === 2);
    await one.printed(new RegExp(`${recent} ping -> (200)`));
    const since = await stopped(one);
    assert.equal(since, old);
    puppet.events.push(late);
    listenToPuppet('--since', since);
    await until('the late one is posted', () => idsReceived().includes(late));
    assert.deepEqual(idsReceived().slice(0, 3), [old, recent, late]);
  });

  it('prints a time to go on from if it is stopped before there was an event, or before the API has answered', async () => {
    const listener = listenToPuppet();
    await listener.printed(/^(Signing secret: )/m);
    const unreached = run(['listen', '--forward-to', receiver.url], {
      CARD_ISSUING_BASE_URL: 'http://127.0.0.1:1/v1',
    });
    await unreached.printed(/^(Trying again: )/m);
    for (const since of [await stopped(listener), await stopped(unreached)]) {
      const agoMs = Date.now() - Date.parse(since);
      assert.ok(agoMs > 0 && agoMs < 300_000, since);
    }
    puppet.events.push(secondsAgo(0));
    listenToPuppet('--since', new Date(0).toISOString());
    await until('it is posted', () => receiver.received.length === 1);
  });

  it('loses no event if it is killed and started again after the last one that it printed', async () => {
    const cards: string[] = [];
    let since = new Date(0).toISOString();
    for (let round = 0; round < 3; round += 1) {
      // The fourth post of each round gets no answer, so it is killed with that one under way.
      const before = receiver.received.length;
      receiver.behave((_request, response, number) => number < before + 3 && response.writeHead(204).end());
      const listener = await listen('--since', since);
      for (let number = 0; number < 6; number += 1) cards.push(await issueCard(`card-${round}-${number}`));
      await until('the fourth is being posted', () => receiver.received.length === before + 4);
      listener.child.kill('SIGKILL');
      await listener.ended;
      since = [...listener.output().matchAll(/^\S+ (evt_\w{26}) .* -> /gm)].at(-1)?.[1] ?? since;
    }
    receiver.behave((_request, response) => response.writeHead(204).end());
    await listen('--since', since);
    await until('each card is posted', () => new Set(cardsReceived()).size === cards.length);
    assert.deepEqual([...new Set(cardsReceived())], cards);
    // What was posted and not yet printed when it was killed comes twice.
    assert.ok(receiver.received.length <= cards.length + 3);
  });

  it('ends with a message and status 1 if the key is revoked', async () => {
    const { operator } = await sharedStack();
    const { id, key } = await createApiKey(operator, { partnerId: partner.id, mode: 'test', name: null });
    const listener = run(['listen', '--forward-to', receiver.url], { CARD_ISSUING_API_KEY: key });
    await listener.printed(/^(Signing secret: )/m);
    const card = await issueCard('1');
    await until('it is posted', () => cardsReceived().includes(card));
    await revokeApiKey(operator, id);
    assert.equal(await listener.ended, 1);
    assert.match(listener.output(), /^Stopped: .*API key/m);
    assert.ok(!listener.output().includes(key));
    const since = /^To go on from here, pass --since (\S+)$/m.exec(listener.output())?.[1] ?? '';
    await listen('--since', since);
    const next = await issueCard('2');
    await until('it goes on', () => cardsReceived().includes(next));
  });

  it('says, with a live key, where everything goes before it sends anything', async () => {
    let said = '';
    const silent = await listenOnLoopback(() => {
      said ||= listener.output();
    });
    const listener = run(['listen', '--forward-to', receiver.url], {
      CARD_ISSUING_API_KEY: `${partner.keys.live}\n`,
      CARD_ISSUING_BASE_URL: `${silent.url}/v1`,
    });
    await until('it asks the API', () => said !== '');
    assert.equal(
      said,
      `This is a live key: it goes to ${silent.url}/v1, and your live events go to ${receiver.url}\n`,
    );
    listener.child.kill('SIGKILL');
    await silent.close();
  });

  it("takes the local stack's test key and address with npm run listen if no key is set", async () => {
    const demo = { partnerId: partner.id, testKey: partner.keys.test, liveKey: partner.keys.live };
    writePrivateFile(dataFolder(scratch.path).stack, JSON.stringify({ apiUrl: baseUrl, demo }));
    const unset = { CARD_ISSUING_API_KEY: '', CARD_ISSUING_BASE_URL: 'https://api.example.com/v1' };
    const args = ['--forward-to', receiver.url];
    const listener = run(args, { ...unset, DATA_DIR: scratch.path }, LOCAL);
    await listener.printed(/^(Posting test events)/m);
    const card = await issueCard('1');
    await until('it is posted', () => cardsReceived().includes(card));

    const lost = run(args, { ...unset, DATA_DIR: join(scratch.path, 'elsewhere') }, LOCAL);
    assert.equal(await lost.ended, 1);
    assert.match(lost.output(), /^no local stack has run in .*elsewhere: start one with npm start/);
    const helped = run(['--help'], { ...unset, DATA_DIR: join(scratch.path, 'elsewhere') }, LOCAL);
    assert.equal(await helped.ended, 0);
    assert.match(helped.output(), /^Usage: /);
  });

  const ELSEWHERE = ['listen', '--forward-to', 'http://localhost:1'];
  const WRONG: [string, string[], number, RegExp, Record<string, string>?][] = [
    ['no URL', ['listen'], 2, /--forward-to must be/],
    ['a URL that is none', ['listen', '--forward-to', 'localhost:4242'], 2, /--forward-to must be/],
    ['another command', ['follow', '--forward-to', 'http://localhost:4242'], 2, /The command is: listen/],
    ['an unknown option', ['listen', '--forward'], 2, /--forward/],
    ['a time that is none', [...ELSEWHERE, '--since', 'yesterday'], 2, /--since/],
    ['an unknown type', [...ELSEWHERE, '--types', 'card.lost'], 1, /type/],
    ['a malformed key', ELSEWHERE, 2, /API_KEY.* begin with sk_test_/, { CARD_ISSUING_API_KEY: 'my key' }],
    ['no key', ELSEWHERE, 2, /Set CARD_ISSUING_API_KEY/, { CARD_ISSUING_API_KEY: '' }],
    ['no base URL', ELSEWHERE, 2, /Set CARD_ISSUING_BASE_URL/, { CARD_ISSUING_BASE_URL: '' }],
    ['a base URL that is none', ELSEWHERE, 2, /BASE_URL.* URL/, { CARD_ISSUING_BASE_URL: 'example.com/v1' }],
  ];
  for (const [what, args, status, message, env] of WRONG) {
    it(`refuses ${what}`, async () => {
      const { ended, output } = run(args, env);
      assert.equal(await ended, status);
      assert.match(output(), message);
      assert.doesNotMatch(output(), /^\s+at /m);
    });
  }
});
