import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { connectFailure, DeliveryFailure } from './delivery-failure.ts';

export interface SocketTarget {
  /** An address, never a name: nothing is looked up here. */
  address: string;
  port: number;
  /** Null for plain HTTP. `serverName` is what the certificate has to be for; empty where the URL names an address. */
  tls: { serverName: string; ca: string | undefined } | null;
  timeoutMs: number;
  signal: AbortSignal;
}

export type OpenSocket = (target: SocketTarget) => Promise<Socket>;

/**
 * A connection to exactly this address, ready for HTTP/1.1.
 * @throws DeliveryFailure, or OwnFailure where this machine is out of something
 */
export const openSocket: OpenSocket = (target) =>
  new Promise((resolve, reject) => {
    const { address, port, tls, timeoutMs, signal } = target;
    const socket =
      tls === null
        ? connect({ host: address, port })
        : connectTls({
            host: address,
            port,
            servername: tls.serverName,
            ca: tls.ca,
            ALPNProtocols: ['http/1.1'],
            minVersion: 'TLSv1.2',
            // Said aloud, because NODE_TLS_REJECT_UNAUTHORIZED=0 is only a default.
            rejectUnauthorized: true,
          });
    let reached = false;
    const giveUp = () => socket.destroy(new DeliveryFailure('timeout'));
    const timer = setTimeout(giveUp, timeoutMs);
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      socket.off('close', fail);
    };
    const fail = (error: unknown) => {
      settle();
      if (!(error instanceof Error)) reject(new DeliveryFailure('connection_closed'));
      else reject(reached ? handshakeFailure(error, socket as TLSSocket) : connectFailure(error));
    };
    signal.addEventListener('abort', giveUp);
    // The listener of errors stays: a socket can fail between this promise and its user's own listener.
    socket.setNoDelay(true).on('error', fail).once('close', fail);
    socket.once('connect', () => {
      reached = true;
    });
    socket.once(tls === null ? 'connect' : 'secureConnect', () => {
      settle();
      resolve(socket);
    });
  });

function handshakeFailure(error: Error & { code?: string }, socket: TLSSocket): Error {
  if (error instanceof DeliveryFailure) return error;
  if (error.code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return new DeliveryFailure('certificate_host_mismatch', { cause: error });
  }
  if (socket.authorizationError) return new DeliveryFailure('certificate_invalid', { cause: error });
  const gone = error.code === 'ECONNRESET' || error.code === 'EPIPE';
  return new DeliveryFailure(gone ? 'connection_closed' : 'tls_failed', { cause: error });
}
