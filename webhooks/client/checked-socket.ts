import { Resolver } from 'node:dns/promises';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { isPublicAddress } from '../../domain/public-address.ts';
import { connectFailure, DeliveryFailure } from './delivery-result.ts';
import type { WebhookTarget } from './webhook-url.ts';

/** How many of a name's addresses are tried. All of them are checked. */
const ADDRESSES_TRIED = 4;

/** How to open sockets. Tests replace the parts. */
export interface NetworkAccess {
  resolve: ResolveHost;
  openSocket: OpenSocket;
  /** Certificates to trust instead of the public ones, PEM. */
  ca: string | undefined;
}

/** All addresses of a host name; rejects if there are none. */
export type ResolveHost = (hostName: string) => Promise<string[]>;

/**
 * Looks the host up once, checks every address, and connects to one of the checked addresses. If one can't be
 * reached, it tries the next.
 * @param deadlineAtMs on the clock of `performance.now()`
 * @throws DeliveryFailure, or OwnFailure; `address_not_allowed`, before anything is sent, if one address is
 * not public
 */
export async function openCheckedSocket(
  target: WebhookTarget,
  network: NetworkAccess,
  { deadlineAtMs, signal }: { deadlineAtMs: number; signal: AbortSignal },
): Promise<Socket> {
  const addresses = target.addresses ?? (await lookUp(target.host, network.resolve));
  const tried = addresses.slice(0, ADDRESSES_TRIED);
  for (const [index, address] of tried.entries()) {
    signal.throwIfAborted();
    // Leave time for the next addresses in case this one drops packets.
    const timeoutMs = Math.max(0, deadlineAtMs - performance.now()) / (tried.length - index);
    const tls = target.secure ? { serverName: tlsServerName(target), ca: network.ca } : null;
    try {
      return await network.openSocket({ address, port: target.port, tls, timeoutMs, signal });
    } catch (error) {
      if (index === tried.length - 1 || !mayBeBetterElsewhere(error)) throw error;
    }
  }
  throw new DeliveryFailure('dns_failed');
}

async function lookUp(host: string, resolve: ResolveHost): Promise<string[]> {
  let addresses: string[];
  try {
    addresses = await resolve(host);
  } catch (error) {
    throw new DeliveryFailure('dns_failed', { cause: error });
  }
  // A private address among public ones is not an accident, so none of them is used.
  if (!addresses.every(isPublicAddress)) throw new DeliveryFailure('address_not_allowed');
  return addresses;
}

/**
 * The name that the certificate must be valid for. Empty for an address: TLS has no server names for those.
 */
function tlsServerName(target: WebhookTarget): string {
  return target.addresses === null ? target.host : '';
}

function mayBeBetterElsewhere(error: unknown): boolean {
  if (!(error instanceof DeliveryFailure)) return false;
  return ['connection_refused', 'connection_failed', 'connection_closed', 'timeout'].includes(error.code);
}

/**
 * Asks the machine's DNS servers, IPv4 first. It doesn't use `dns.lookup`, which blocks one of the process's
 * four libuv threads until the name server answers: a few names whose servers never answer would stop all
 * other look-ups.
 * @param servers DNS servers to ask instead, as address:port
 */
export function createHostResolver(servers?: readonly string[]): ResolveHost {
  const resolver = new Resolver({ timeout: 2_000, maxTimeout: 2_000, tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  return async (hostName) => {
    const answers = await Promise.allSettled([resolver.resolve4(hostName), resolver.resolve6(hostName)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses;
    const reasons = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
    throw new AggregateError(reasons, `${hostName} has no address; check the name and this machine's DNS`);
  };
}

interface SocketTarget {
  /** An address, never a name: nothing is resolved here. */
  address: string;
  port: number;
  /**
   * Null for plain HTTP. The certificate must be for `serverName`, which is empty if the URL names an
   * address.
   */
  tls: { serverName: string; ca: string | undefined } | null;
  timeoutMs: number;
  signal: AbortSignal;
}

export type OpenSocket = (target: SocketTarget) => Promise<Socket>;

/**
 * Connects to exactly this address, and returns a socket that is ready for HTTP/1.1.
 * @throws DeliveryFailure, or OwnFailure if this machine is out of a resource
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
            // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would change the default.
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
    // The error listener stays: the socket can fail after this promise resolves and before its user listens.
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
