import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { isLetGo, postTo, withClient } from '../../../support/adapters/webhooks/clients.ts';
import { answering, startRawReceiver, startReceiver } from '../../../support/adapters/webhooks/receivers.ts';

describe("a receiver's answer", () => {
  it('is kept up to 1,024 bytes, and no character is cut in half', async () => {
    const result = await postTo(startReceiver(answering(200, `a${'é'.repeat(2_000)}`)));
    assert.equal(result.answerStart, `a${'é'.repeat(511)}`);
  });

  it('is stripped of control characters and invalid bytes, so that it can be stored and shown', async () => {
    const bytes = Buffer.concat([Buffer.from('a\0b\x1b[31mc\r\nd\te\u202ef'), Buffer.of(0xff)]);
    const result = await postTo(startReceiver((_request, response) => response.end(bytes)));
    assert.equal(result.answerStart, 'a\uFFFDb\uFFFD[31mc\nd\te\uFFFDf\uFFFD');
  });

  it('is not decompressed, whatever its encoding', async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000, 'x'));
    const packed = startReceiver((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    );
    const result = await postTo(packed);
    assert.equal(result.outcome, 'delivered');
    assert.ok(!result.answerStart?.includes('xxx'));
  });

  for (const [bytes, connections, what] of [
    [16_384, 1, 'leaves the connection usable if it has 16 KiB'],
    [16_385, 3, 'closes the connection if it has one byte more than 16 KiB'],
  ] as const) {
    it(what, async () => {
      await using receiver = await startReceiver(answering(200, 'x'.repeat(bytes)));
      await withClient({}, async (post) => {
        for (let i = 0; i < 3; i++) {
          assert.equal((await post(`http://127.0.0.1:${receiver.port}/`)).outcome, 'delivered');
        }
      });
      assert.equal(receiver.connections, connections);
    });
  }

  it('is cut off with its connection if it never ends', async () => {
    const endless = startRawReceiver((socket) => {
      const pour = () => {
        while (socket.writable && socket.write('x'.repeat(65_536)));
      };
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.on('drain', pour);
      pour();
    });
    const result = await postTo(endless, { after: isLetGo });
    assert.deepEqual(
      [result.outcome, result.httpStatus, result.answerStart],
      ['delivered', 200, 'x'.repeat(1_024)],
    );
  });

  for (const [status, outcome] of [
    [200, 'delivered'],
    [500, 'failed'],
  ] as const) {
    it(`is cut off with its connection if it drips for ever after a ${status}`, async () => {
      const dripping = startRawReceiver((socket) => {
        socket.write(`HTTP/1.1 ${status} Status\r\ncontent-length: 100000\r\n\r\n`);
        const drip = setInterval(() => socket.write('.'), 20);
        socket.once('close', () => clearInterval(drip));
      });
      const result = await postTo(dripping, { after: isLetGo });
      assert.deepEqual([result.outcome, result.httpStatus], [outcome, status]);
      assert.match(result.answerStart ?? '', /^\.+$/);
    });
  }
});
