import assert from 'node:assert/strict';
import type { TlsOptions } from 'node:tls';
import type { openSocket } from '../../../../webhooks/client/checked-socket.ts';
import { HOST, leadTo, PUBLIC, withClient } from '../../../support/adapters/webhooks/clients.ts';
import { answering, startRawReceiver, startReceiver } from '../../../support/adapters/webhooks/receivers.ts';
import { createTrust, postOverTls, serving, type Trust } from '../../../support/adapters/webhooks/tls.ts';

describe('a webhook over HTTPS', () => {
  let trust: Trust;

  before(() => {
    trust = createTrust();
  });

  it('names the host in the request although it connects to an address', async () => {
    const heard: unknown[] = [];
    const tls: TlsOptions = {
      ...trust.good,
      SNICallback: (name, done) => {
        heard.push(name);
        done(null);
      },
    };
    const receiver = startReceiver((request, response) => {
      heard.push(request.headers.host, request.httpVersion);
      answering(200)(request, response);
    }, tls);
    assert.deepEqual(await postOverTls(trust, receiver, { url: `https://${HOST}:8443/` }), [
      ['delivered', null],
    ]);
    assert.deepEqual(heard, [HOST, `${HOST}:8443`, '1.1']);
  });

  it('reuses a connection', async () => {
    const receiver = await serving(trust.good);
    const posted = await postOverTls(trust, Promise.resolve(receiver), { times: 3 });
    assert.deepEqual([posted, receiver.connections], [Array(3).fill(['delivered', null]), 1]);
  });

  it('accepts TLS 1.2 and refuses TLS 1.1', async () => {
    const version = (maxVersion: 'TLSv1.1' | 'TLSv1.2') =>
      serving({ ...trust.good, minVersion: 'TLSv1', maxVersion, ciphers: 'DEFAULT@SECLEVEL=0' });
    assert.deepEqual(await postOverTls(trust, version('TLSv1.2')), [['delivered', null]]);
    assert.deepEqual(await postOverTls(trust, version('TLSv1.1')), [['failed', 'tls_failed']]);
  });

  it('fails if the receiver asks for a client certificate', async () => {
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      const demanding = serving({
        ...trust.good,
        ca: trust.stranger.ca,
        requestCert: true,
        rejectUnauthorized: true,
        maxVersion,
      });
      const [[outcome, error] = []] = await postOverTls(trust, demanding);
      assert.equal(outcome, 'failed');
      // Which of the two depends on whether its refusal or its hanging up is seen first.
      assert.ok(error === 'tls_failed' || error === 'connection_closed', `${maxVersion}: ${error}`);
    }
  });

  it('fails if the receiver speaks plain HTTP, garbage or nothing', async () => {
    for (const [says, error] of [
      ['HTTP/1.1 400 Bad Request\r\n\r\n', 'tls_failed'],
      ['\x00'.repeat(100), 'tls_failed'],
      [null, 'connection_closed'],
    ] as const) {
      const receiver = await startRawReceiver(() => {});
      receiver.onConnection = (socket) => (says === null ? socket.destroy() : socket.write(says));
      assert.deepEqual(await postOverTls(trust, Promise.resolve(receiver)), [['failed', error]]);
    }
  });

  it('ends a handshake that hangs at the deadline, with its connection', async () => {
    await using receiver = await startRawReceiver(() => {});
    const openSocket = leadTo(receiver.port);
    const options = { ca: trust.authority.ca, resolve: async () => [PUBLIC], openSocket, timeoutMs: 300 };
    const result = await withClient(options, (post) => post(`https://${HOST}/`));
    assert.deepEqual([result.outcome, result.error], ['failed', 'timeout']);
  });

  it('leaves time for the next address if the handshake with one hangs', async () => {
    const hanging = await startRawReceiver(() => {});
    const receiver = await serving(trust.good);
    const options = {
      ca: trust.authority.ca,
      timeoutMs: 4_000,
      resolve: async () => ['8.8.8.8', PUBLIC],
      openSocket: ((target) =>
        leadTo(target.address === PUBLIC ? receiver.port : hanging.port)(target)) satisfies typeof openSocket,
    };
    try {
      const result = await withClient(options, (post) => post(`https://${HOST}/`));
      assert.deepEqual([result.outcome, hanging.connections], ['delivered', 1]);
    } finally {
      await Promise.all([hanging.close(), receiver.close()]);
    }
  });
});
