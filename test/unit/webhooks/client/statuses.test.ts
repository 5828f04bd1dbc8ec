import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { postTo } from '../../../support/adapters/webhooks/clients.ts';
import {
  answering,
  startCanary,
  startRawReceiver,
  startReceiver,
} from '../../../support/adapters/webhooks/receivers.ts';

describe('an HTTP status', () => {
  for (const status of [200, 201, 202, 204, 206, 299]) {
    it(`counts as delivered if it is ${status}`, async () => {
      const result = await postTo(startReceiver(answering(status)));
      assert.deepEqual(
        { ...result, durationMs: 0 },
        {
          outcome: 'delivered',
          httpStatus: status,
          error: null,
          durationMs: 0,
          answerStart: '',
        },
      );
      assert.ok(Number.isInteger(result.durationMs));
    });
  }

  for (const status of [300, 304, 400, 401, 404, 408, 410, 413, 429, 500, 502, 503, 599]) {
    it(`counts as a failure, which records it, if it is ${status}`, async () => {
      const text = status === 304 ? '' : 'sorry';
      const result = await postTo(startReceiver(answering(status, text)));
      assert.deepEqual(
        [result.outcome, result.httpStatus, result.error, result.answerStart],
        ['failed', status, null, text],
      );
    });
  }

  for (const status of [301, 302, 303, 307, 308]) {
    it(`counts as a failure if it is ${status}, and the redirect is not followed`, async () => {
      await using canary = await startCanary();
      const redirecting: RequestListener = (request, response) =>
        request
          .resume()
          .once('end', () =>
            response.writeHead(status, { location: `http://127.0.0.1:${canary.port}/` }).end('elsewhere'),
          );
      const result = await postTo(startReceiver(redirecting));
      assert.deepEqual([result.outcome, result.httpStatus, result.error], ['failed', status, null]);
      await canary.assertUntouched();
    });
  }

  it('is awaited after early hints', async () => {
    const early = startRawReceiver((socket) => {
      socket.write('HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n');
      socket.write('HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok');
    });
    const result = await postTo(early);
    assert.deepEqual([result.outcome, result.httpStatus, result.answerStart], ['delivered', 201, 'ok']);
  });

  it('may come over HTTP/1.0, in an answer that ends with the connection', async () => {
    const old = startRawReceiver((socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nbye'));
    const result = await postTo(old);
    assert.deepEqual([result.outcome, result.httpStatus, result.answerStart], ['delivered', 200, 'bye']);
  });

  it('counts even if the receiver goes away in the middle of its answer', async () => {
    for (const away of ['destroy', 'resetAndDestroy'] as const) {
      const cutShort = startRawReceiver((socket) =>
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf', () => socket[away]()),
      );
      const result = await postTo(cutShort);
      assert.deepEqual([result.outcome, result.httpStatus], ['delivered', 200], away);
    }
  });

  it('counts even if the answer turns into garbage', async () => {
    const garbled = startRawReceiver((socket) =>
      socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno chunk at all\r\n'),
    );
    const result = await postTo(garbled);
    assert.deepEqual([result.outcome, result.httpStatus], ['delivered', 200]);
  });
});
