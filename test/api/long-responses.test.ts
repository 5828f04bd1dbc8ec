import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { expectError } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { startTestStack, type TestPartner } from '../support/stack.ts';
import { until } from '../support/until.ts';

/** As large as metadata can be: 50 keys, here of 900 bytes. */
const METADATA = Object.fromEntries(
  Array.from({ length: 50 }, (_, index) => [`key${index}`, '界'.repeat(300)]),
);

async function makeCards(partner: TestPartner, count: number): Promise<void> {
  for (let made = 0; made < count; made++)
    assert.equal((await createCard(partner, { amount: 1_000, metadata: METADATA })).status, 201);
}

describe('a long response', () => {
  it('of a list ends at about 1 MB, the next page has the rest, and it counts only until it has been read', async () => {
    const partner = await fundedPartner(await sharedStack('api'));
    await makeCards(partner, 30);
    const read = (query = '') => partner.call('GET', `/cards?limit=100${query}`);
    const first = await read();
    assert.ok(Buffer.byteLength(first.text) < 1.1 * 1_048_576);
    assert.deepEqual([first.json.has_more, first.json.next_cursor], [true, first.json.data.at(-1).id]);
    const rest = await read(`&starting_after=${first.json.next_cursor}`);
    assert.equal(rest.json.has_more, false);
    const ids = [...first.json.data, ...rest.json.data].map(({ id }: { id: string }) => id);
    assert.equal(new Set(ids).size, 30);
    for (let again = 0; again < 8; again++) assert.equal((await read()).status, 200);
  });
});

describe('responses that nobody reads', () => {
  /** More than the buffers of a connection hold. */
  const ASKED = 60;

  it('count against their account alone, until their connection is closed because nothing is read', async () => {
    const responseLimits = { stallMs: 3_000, maxMs: 60_000, maxUnsentBytes: 200_000 };
    await using stack = await startTestStack({ responseLimits }, { worker: false });
    const [partner, other] = [await fundedPartner(stack), await fundedPartner(stack)];
    await makeCards(partner, 8);
    const { host, port } = stack.config;
    const socket = connect({ host, port, noDelay: true }).pause();
    socket.on('error', () => {});
    const head = `GET /v1/cards?limit=100 HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer ${partner.keys.test}\r\n\r\n`;
    socket.write(head.repeat(ASKED));

    const balance = (status: number) =>
      until(`the account gets ${status}`, async () => {
        const answer = await partner.call('GET', '/balance');
        return answer.status === status && answer;
      });
    const refused = await balance(429);
    expectError(refused, 'rate_limited');
    assert.match(refused.json.error.message, /have not read the responses/);
    assert.equal(refused.headers.get('retry-after'), '1');
    assert.equal((await other.call('GET', '/balance')).status, 200);
    assert.equal((await partner.call('GET', '/balance', { mode: 'live' })).status, 200);

    await balance(200);
    let received = '';
    socket.on('data', (part) => {
      received += part;
    });
    await once(socket.resume(), 'close');
    const answers = received.split('HTTP/1.1 200 OK').length - 1;
    assert.ok(answers < ASKED, `all ${answers} were sent`);
  });
});
