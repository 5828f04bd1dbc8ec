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
  for (const [outcome, statuses] of [
    ['delivered', [200, 201, 202, 204, 206, 299]],
    ['failed', [300, 304, 400, 401, 404, 408, 410, 413, 429, 500, 502, 503, 599]],
  ] as const) {
    for (const httpStatus of statuses) {
      it(`counts as ${outcome} if it is ${httpStatus}`, async () => {
        const answerStart = [204, 304].includes(httpStatus) ? '' : 'text';
        const { durationMs, ...result } = await postTo(startReceiver(answering(httpStatus, answerStart)));
        assert.deepEqual(result, { outcome, httpStatus, error: null, answerStart });
        assert.ok(Number.isInteger(durationMs));
      });
    }
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

  const HINTS = 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';
  const HALF = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf';
  const GARBLED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno chunk at all\r\n';
  for (const [what, bytes, away, text] of [
    ['is awaited after early hints', `${HINTS}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`, 'end', 'ok'],
    ['may come over HTTP/1.0, in an answer without an end', 'HTTP/1.0 200 OK\r\n\r\nbye', 'end', 'bye'],
    ['counts even if the receiver closes in the middle of its answer', HALF, 'destroy', null],
    ['counts even if the receiver resets in the middle of its answer', HALF, 'resetAndDestroy', null],
    ['counts even if the answer turns into garbage', GARBLED, 'end', null],
  ] as const) {
    it(what, async () => {
      const receiver = startRawReceiver((socket) => socket.write(bytes, () => socket[away]()));
      const { outcome, httpStatus, answerStart } = await postTo(receiver);
      assert.deepEqual([outcome, httpStatus, text ?? answerStart], ['delivered', 200, answerStart]);
    });
  }
});
