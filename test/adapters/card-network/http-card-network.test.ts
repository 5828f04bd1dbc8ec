import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { CardNetworkUnavailable } from '../../../adapters/card-network/card-network.ts';
import { createHttpCardNetwork } from '../../../adapters/card-network/http-card-network.ts';
import { freePort } from '../../../dev/free-port.ts';
import { issuance } from '../support/issuance.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';

const asked = issuance(0);
const issued = { status: 'issued', networkCardId: 'sim_1', last4: '1234', expMonth: 2, expYear: 2030 };
const says = (body: unknown, status = 200): RequestListener => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return (_request, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(text);
};
const answers = (issuance: object) => says({ token: asked.token, issuance });

/** Asks a network that behaves like this once in each way, and gives what comes of it. */
async function askBoth(network: RequestListener) {
  const server = await listenOnLoopback(network);
  const client = createHttpCardNetwork({ url: server.url, bearerToken: 'bearer-secret' });
  try {
    return await Promise.allSettled([client.issueCard(asked), client.lookUpIssuance(asked.token)]);
  } finally {
    await client.close();
    await server.close();
  }
}

function assertUnavailable(result: PromiseSettledResult<unknown>, message: RegExp): void {
  assert.equal(result.status, 'rejected');
  const error: unknown = result.reason;
  assert.ok(error instanceof CardNetworkUnavailable, String(error));
  assert.match(error.message, message);
  assert.equal(error.cause, undefined);
  assert.doesNotMatch(error.message, /Ada|Lovelace|bearer-secret|leaked/);
}

describe('the client of a card network over HTTP', () => {
  const definite: object[] = [
    issued,
    { status: 'accepted' },
    { status: 'declined', reason: 'declined_by_network' },
    { status: 'failed', reason: 'failed_at_network' },
  ];
  for (const answer of definite) {
    it(`hands on a definite answer: ${Object.values(answer)[0]}`, async () => {
      for (const result of await askBoth(answers(answer))) {
        assert.deepEqual(result, { status: 'fulfilled', value: answer });
      }
    });
  }

  it('takes "unknown" as the answer of a look-up, never of an issuance', async () => {
    const [issue, lookUp] = await askBoth(answers({ status: 'unknown' }));
    assertUnavailable(issue, /agreed shape \(issuance\.status\)/);
    assert.deepEqual(lookUp, { status: 'fulfilled', value: { status: 'unknown' } });
  });

  it('drops what it does not know of an answer', async () => {
    for (const result of await askBoth(answers({ ...issued, pan: '4242424242424242' }))) {
      assert.deepEqual(result, { status: 'fulfilled', value: issued });
    }
  });

  const indefinite: Record<string, [RequestListener, RegExp]> = {
    'is not JSON': [says('leaked: <html>'), /not JSON/],
    'is empty': [says(''), /not JSON/],
    'is JSON of another kind': [says([1, 2]), /agreed shape \(body\)/],
    'has no issuance': [says({ token: asked.token }), /agreed shape \(issuance/],
    'has a status nobody knows': [answers({ status: 'leaked' }), /agreed shape/],
    'lacks the card': [answers({ status: 'issued' }), /agreed shape .*last4/],
    'has a last4 of five digits': [
      answers({ ...issued, last4: '12345' }),
      /agreed shape \(issuance\.last4\)/,
    ],
    'has a thirteenth month': [answers({ ...issued, expMonth: 13 }), /agreed shape \(issuance\.expMonth\)/],
    'has a free text for a reason': [
      answers({ status: 'declined', reason: 'Ada leaked' }),
      /issuance\.reason/,
    ],
    'is about another token': [says({ token: issuance(0).token, issuance: issued }), /another token/],
    'is larger than 64 KiB': [says(`"${'leaked'.repeat(20_000)}"`), /no answer/],
    'is cut off': [
      (_request, response) => {
        response.writeHead(200, { 'content-length': '500' });
        response.write('{"token":', () => response.destroy());
      },
      /no answer/,
    ],
    'never comes, as the connection is cut': [(request) => request.destroy(), /no answer \(UND_ERR_SOCKET\)/],
    'is a redirect': [
      (_request, response) => response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end(),
      /answered 307/,
    ],
    'is 400': [says('leaked', 400), /answered 400; .*BIN/],
    'is 401': [says('leaked', 401), /answered 401; .*secrets/],
    'is 404': [says('leaked', 404), /answered 404/],
    'is 409': [says('leaked', 409), /answered 409; .*look it up/],
    'is 429': [says('leaked', 429), /answered 429/],
    'is 500': [says('leaked', 500), /answered 500/],
    'is 503': [says('leaked', 503), /answered 503; ask again/],
  };
  for (const [name, [network, message]] of Object.entries(indefinite)) {
    it(`says it is unavailable when its answer ${name}`, async () => {
      for (const result of await askBoth(network)) assertUnavailable(result, message);
    });
  }

  it('gives up on a network that hangs, before its answer or in the middle of it', async () => {
    const silent = askBoth(() => {});
    const stalling = askBoth((_request, response) => {
      response.writeHead(200).write('{');
    });
    for (const result of [...(await silent), ...(await stalling)]) {
      assertUnavailable(result, /no answer \(TimeoutError\)/);
    }
  });

  it('says it is unavailable when nobody listens', async () => {
    const client = createHttpCardNetwork({ url: `http://127.0.0.1:${await freePort()}`, bearerToken: 'x' });
    for (const result of await Promise.allSettled([
      client.issueCard(asked),
      client.lookUpIssuance(asked.token),
    ])) {
      assertUnavailable(result, /no answer \(ECONNREFUSED\)/);
    }
    await client.close();
  });

  it('sends the request, with the bearer token', async () => {
    const seen: unknown[] = [];
    const server = await listenOnLoopback(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      seen.push([
        request.method,
        request.url,
        request.headers.authorization,
        body === '' ? '' : JSON.parse(body),
      ]);
      answers({ status: 'accepted' })(request, response);
    });
    const client = createHttpCardNetwork({ url: server.url, bearerToken: 'bearer-secret' });
    await client.issueCard(asked);
    await client.lookUpIssuance(asked.token);
    await client.close();
    await server.close();
    assert.deepEqual(seen, [
      ['POST', '/issuances', 'Bearer bearer-secret', asked],
      ['GET', `/issuances/${asked.token}`, 'Bearer bearer-secret', ''],
    ]);
  });
});
