import assert from 'node:assert/strict';
import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { postTo } from '../../../support/adapters/webhooks/clients.ts';
import { answering, BODY, startCanary, startReceiver } from '../../../support/adapters/webhooks/receivers.ts';

describe('a webhook request', () => {
  it('is one POST with the exact bytes and the given headers, and does not ask for compression', async () => {
    const heard: { line: string; headers: IncomingHttpHeaders; body: string }[] = [];
    const listener: RequestListener = async (request, response) => {
      const line = `${request.method} ${request.url} ${request.httpVersion}`;
      heard.push({ line, headers: request.headers, body: (await buffer(request)).toString() });
      response.end();
    };
    const receiver = await startReceiver(listener);
    await postTo(Promise.resolve(receiver), { path: '/in?token=%20a' });
    assert.deepEqual(heard, [
      {
        line: 'POST /in?token=%20a 1.1',
        headers: {
          host: `127.0.0.1:${receiver.port}`,
          connection: 'keep-alive',
          'content-type': 'application/json',
          'content-length': String(Buffer.byteLength(BODY)),
          'user-agent': 'virtual-card-issuing-api',
          'accept-encoding': 'identity',
          'x-service-event-id': 'evt_1',
        },
        body: BODY,
      },
    ]);
  });

  it('ignores every proxy in the environment', async () => {
    const canary = await startCanary();
    const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'];
    const before = names.map((name) => [name, process.env[name]] as const);
    for (const name of names) process.env[name] = `http://127.0.0.1:${canary.port}`;
    try {
      assert.equal((await postTo(startReceiver(answering(200)))).outcome, 'delivered');
      await canary.assertUntouched();
    } finally {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
      await canary.close();
    }
  });
});
