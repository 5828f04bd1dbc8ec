import { once } from 'node:events';
import { connect, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';

/** gRPC's PERMISSION_DENIED. */
const DENIED = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '7' };

/**
 * Temporal as its cloud shows it to a service: everything is the server's at `address`, but nobody may administer it
 * through the API.
 */
export async function startTemporalCloud(address: string) {
  const upstream = connect(`http://${address}`);
  const server = createServer();
  const refused: string[] = [];
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const path = String(headers[':path']);
    const [, service = '', method = ''] = path.split('/');
    if (service.endsWith('.OperatorService') || method === 'RegisterNamespace') {
      refused.push(method);
      stream.respond({ ...DENIED, 'grpc-message': 'Request unauthorized.' }, { endStream: true });
      return;
    }
    const forwarded = upstream.request({ ...headers, ':authority': address, ':scheme': 'http' });
    stream.pipe(forwarded);
    forwarded.on('response', (answer) =>
      // An error has no body, and so its status in the headers.
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
