import { once } from 'node:events';
import { connect, createSecureServer, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TLSSocket, TlsOptions } from 'node:tls';

/** gRPC's PERMISSION_DENIED. */
const DENIED = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '7' };

export interface TemporalCloudOptions {
  /** It uses TLS, and identifies its callers by a certificate or an API key. */
  tls?: TlsOptions;
  /** The callers that it serves, by API key or by a certificate's common name; it may change. Anybody if left out. */
  accepted?: ReadonlySet<string>;
}

/**
 * Temporal as its cloud shows it to a service: everything is the server's at `address`, but nobody may administer it
 * through the API.
 */
export async function startTemporalCloud(address: string, { tls, accepted }: TemporalCloudOptions = {}) {
  const upstream = connect(`http://${address}`);
  // It asks every caller for a certificate, and checks it itself.
  const server =
    tls === undefined
      ? createServer()
      : createSecureServer({ ...tls, requestCert: true, rejectUnauthorized: false });
  const refused: string[] = [];
  server.on('session', (session) => session.on('error', () => {}));
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const path = String(headers[':path']);
    const [, service = '', method = ''] = path.split('/');
    const caller = callerOf(stream, headers.authorization);
    const isServed = accepted === undefined || (caller !== null && accepted.has(caller));
    if (!isServed || service.endsWith('.OperatorService') || method === 'RegisterNamespace') {
      refused.push(method);
      stream.on('error', () => {});
      stream.respond({ ...DENIED, 'grpc-message': 'Request unauthorized.' }, { endStream: true });
      return;
    }
    const forwarded = upstream.request({ ...headers, ':authority': address, ':scheme': 'http' });
    stream.pipe(forwarded);
    forwarded.on('response', (answer) =>
      // An error has no body, so its status is in the headers.
      stream.respond(answer, 'grpc-status' in answer ? { endStream: true } : { waitForTrailers: true }),
    );
    let trailers = {};
    forwarded.on('trailers', (given) => {
      trailers = given;
    });
    stream.on('wantTrailers', () => stream.sendTrailers(trailers));
    forwarded.pipe(stream);
    stream.on('close', () => forwarded.close());
    for (const either of [stream, forwarded]) either.on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** The methods that it refused. */
    refused,
    stop: () => {
      upstream.destroy();
      server.close();
    },
  };
}

/** The caller's API key, or the name on a certificate that it is known to have; otherwise null. */
function callerOf(stream: ServerHttp2Stream, authorization: string | undefined): string | null {
  const [, apiKey] = /^Bearer (.+)$/.exec(authorization ?? '') ?? [];
  if (apiKey !== undefined) return apiKey;
  const socket = stream.session?.socket as TLSSocket | undefined;
  return socket?.authorized === true ? String(socket.getPeerCertificate().subject.CN) : null;
}
