import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Declaration } from '../../../api/http/route.ts';
import { DECLARATIONS } from '../../../api/routes.ts';
import { CardIssuing } from '../../../client/index.ts';
import { nameOf, parametersOf, pathTo, queryParametersOf } from '../../support/api/declared-operations.ts';
import { type LoopbackServer, listenOnLoopback } from '../../support/sockets.ts';

type Method = (...given: unknown[]) => Promise<unknown>;

interface Received {
  line: string;
  body: string;
  headers: IncomingMessage['headers'];
}

/** How the service answers an operation, by its first example. */
function answer({ responses, contentType, examples }: Declaration, response: ServerResponse): void {
  const [status = 0] = Object.keys(responses).map(Number);
  const headers = { 'request-id': 'req_1', 'content-type': contentType ?? 'application/json' };
  const example = examples[status];
  response.writeHead(status, headers);
  response.end(typeof example === 'object' ? JSON.stringify(example) : example);
}

/** What the service does with each is in test/client/whole-surface.test.ts and the tests of the API. */
describe("the client's method for", () => {
  let server: LoopbackServer;
  let asked: Declaration;
  let received: Received[];
  before(async () => {
    server = await listenOnLoopback(async (request, response) => {
      const { method, url, headers } = request;
      received.push({ line: `${method} ${url}`, body: await text(request), headers });
      answer(asked, response);
    });
  });
  after(() => server.close());

  for (const declaration of DECLARATIONS) {
    const { method, operationId, body, examples, contentType, responses, idempotencyKey } = declaration;
    it(`${nameOf(declaration)} sends its parameters, query and body, and returns the response`, async () => {
      asked = declaration;
      received = [];
      const names = parametersOf(declaration);
      const ids = names.map((name) => `id_of_${name.toLowerCase()}`);
      const query = examples.query ?? { limit: '7' };
      const hasQuery = queryParametersOf(declaration).length > 0;
      const given = [...ids, ...(body ? [examples.body ?? {}] : []), ...(hasQuery ? [query] : [])];
      const client = new CardIssuing({ apiKey: 'sk_test_nobody', baseUrl: `${server.url}/v1` });
      const [group = '', name = ''] = operationId.split('.');
      const groups = client as unknown as Record<string, Record<string, Method>>;
      const made = await groups[group]?.[name]?.(...given);

      const values = Object.fromEntries(names.map((name, at) => [name, ids[at] ?? '']));
      const path = pathTo({ ...declaration, examples: {} }, values);
      const search = hasQuery ? `?${new URLSearchParams(query)}` : '';
      const [one] = received;
      assert.deepEqual([received.length, one?.line], [1, `${method.toUpperCase()} /v1${path}${search}`]);
      assert.deepEqual(JSON.parse(one?.body || '{}'), (body && examples.body) ?? {});
      assert.equal(one?.headers.authorization, 'Bearer sk_test_nobody');
      assert.equal(one?.headers['idempotency-key'] !== undefined, idempotencyKey !== undefined);
      const example = examples[Number(Object.keys(responses)[0])];
      if (contentType === 'text/csv')
        assert.equal(await new Response(made as ReadableStream).text(), example);
      else assert.deepEqual(JSON.parse(JSON.stringify(made ?? null)), example ?? null);
    });
  }
});
