import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { freePort } from '../../../../dev/free-port.ts';
import { CardNetworkUnavailable } from '../../../../issuers/card-network.ts';
import { createSimulatedClient } from '../../../../issuers/simulated/client.ts';
import { CALLS, type Call } from '../../../support/adapters/network-calls.ts';
import { listenOnLoopback } from '../../../support/sockets.ts';

const says = (body: unknown, status = 200): RequestListener => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return (_request, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(text);
};

/** Makes each call once at a network that behaves like this, and returns the results. */
async function ask(
  calls: readonly Call[],
  network: RequestListener,
): Promise<PromiseSettledResult<unknown>[]> {
  const server = await listenOnLoopback(network);
  const client = createSimulatedClient({
    url: server.url,
    bearerToken: 'bearer-secret',
    keyLifetimeMs: 72_000_000,
  });
  try {
    return await Promise.allSettled(calls.map((call) => call.make(client)));
  } finally {
    await client.close();
    await server.close();
  }
}

function assertUnavailable(result: PromiseSettledResult<unknown> | undefined, message: RegExp): void {
  assert.ok(result?.status === 'rejected');
  const error: unknown = result.reason;
  assert.ok(error instanceof CardNetworkUnavailable, String(error));
  assert.match(error.message, message);
  assert.equal(error.cause, undefined);
  assert.doesNotMatch(error.message, /Ada|Lovelace|bearer-secret|leaked|[0-9]{12}/);
}

describe('the HTTP client of a card network', () => {
  for (const call of CALLS) {
    describe(`for ${call.name}`, () => {
      for (const answer of call.definite) {
        it(`returns the answer "${Object.values(answer)[0]}" and drops fields that it does not know`, async () => {
          for (const more of [{}, { leaked: '4242424242424242' }]) {
            const [result] = await ask([call], says(call.answered({ ...answer, ...more })));
            assert.deepEqual(result, { status: 'fulfilled', value: answer });
          }
        });
      }

      for (const answer of call.unreadable) {
        it(`reports the network as unavailable when the answer is ${JSON.stringify(answer)}`, async () => {
          const [result] = await ask([call], says(call.answered(answer)));
          assertUnavailable(result, /unexpected shape/);
        });
      }

      it('reports the network as unavailable when the answer is about another token or card', async () => {
        const [result] = await ask([call], says(call.about('another', call.definite[0] ?? {})));
        assertUnavailable(result, /another token or card/);
      });

      it('sends the request with the bearer token', async () => {
        const seen: unknown[] = [];
        await ask([call], async (request, response) => {
          const body = await text(request);
          seen.push([request.method, request.url, request.headers.authorization, body && JSON.parse(body)]);
          says(call.answered(call.definite[0] ?? {}))(request, response);
        });
        assert.deepEqual(seen, [[call.method, call.path, 'Bearer bearer-secret', call.body ?? '']]);
      });
    });
  }

  const indefinite: Record<string, [RequestListener, RegExp]> = {
    'is not JSON': [says('leaked: <html>'), /not JSON/],
    'is empty': [says(''), /not JSON/],
    'is JSON but not an object': [says([1, 2]), /unexpected shape \(body\)/],
    'is an empty object': [says({}), /unexpected shape \(\w+, \w+\)/],
    'is larger than 64 KiB': [says(`"${'leaked'.repeat(20_000)}"`), /no response/],
    'is cut off': [
      (_request, response) => {
        response.writeHead(200, { 'content-length': '500' });
        response.write('{"token":', () => response.destroy());
      },
      /no response/,
    ],
    'never arrives because the connection is cut': [
      (request) => request.destroy(),
      /no response \(UND_ERR_SOCKET\)/,
    ],
    'is a redirect': [
      (_request, response) => response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end(),
      /answered 307/,
    ],
    'is 400': [says('leaked', 400), /answered 400; .*BIN/],
    'is 401': [says('leaked', 401), /answered 401; .*secrets/],
    'is 404': [says('leaked', 404), /answered 404; .*no such card/],
    'is 409': [says('leaked', 409), /answered 409; .*look it up/],
    'is 429': [says('leaked', 429), /answered 429/],
    'is 500': [says('leaked', 500), /answered 500/],
    'is 503': [says('leaked', 503), /answered 503; ask again/],
  };
  for (const [name, [network, message]] of Object.entries(indefinite)) {
    it(`reports the network as unavailable when an answer ${name}`, async () => {
      for (const result of await ask(CALLS, network)) assertUnavailable(result, message);
    });
  }

  it('gives up on a network that hangs before its answer or in the middle of it', async () => {
    const silent = ask(CALLS, () => {});
    const stalling = ask(CALLS, (_request, response) => {
      response.writeHead(200).write('{');
    });
    for (const result of (await Promise.all([silent, stalling])).flat()) {
      assertUnavailable(result, /no response \(TimeoutError\)/);
    }
  });

  it('reports the network as unavailable when nothing listens at its address', async () => {
    const client = createSimulatedClient({
      url: `http://127.0.0.1:${await freePort()}`,
      bearerToken: 'x',
      keyLifetimeMs: 72_000_000,
    });
    for (const result of await Promise.allSettled(CALLS.map((call) => call.make(client)))) {
      assertUnavailable(result, /no response \(ECONNREFUSED\)/);
    }
    await client.close();
  });
});
