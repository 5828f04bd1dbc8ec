import type { Socket } from 'node:net';
import { isPublicAddress } from '../../domain/public-address.ts';
import type { WebhookTarget } from '../../domain/webhook-url.ts';
import { DeliveryFailure } from './delivery-failure.ts';
import type { OpenSocket } from './open-socket.ts';
import type { ResolveHost } from './resolve-host.ts';

/** Of a name with many addresses these many are tried; all are checked. */
const ADDRESSES_TRIED = 4;

export interface Network {
  resolve: ResolveHost;
  openSocket: OpenSocket;
  /** Certificates to trust instead of the public ones, PEM. */
  ca: string | undefined;
}

/**
 * Looks the host up once, checks every address, and connects to one of those it checked; the next where the first can't
 * be reached.
 * @param deadlineAtMs on the clock of `performance.now()`
 * @throws DeliveryFailure, or OwnFailure; `address_not_allowed` before anything was sent where one address is not public
 */
export async function connectChecked(
  target: WebhookTarget,
  network: Network,
  { deadlineAtMs, signal }: { deadlineAtMs: number; signal: AbortSignal },
): Promise<Socket> {
  const addresses = target.addresses ?? (await lookUp(target.host, network.resolve));
  const tried = addresses.slice(0, ADDRESSES_TRIED);
  for (const [index, address] of tried.entries()) {
    signal.throwIfAborted();
    // An address that swallows packets leaves time for the ones after it.
    const timeoutMs = Math.max(0, deadlineAtMs - performance.now()) / (tried.length - index);
    const tls = target.secure ? { serverName: serverNameOf(target), ca: network.ca } : null;
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
  // One bad address among good ones is no accident, so it spoils them all.
  if (!addresses.every(isPublicAddress)) throw new DeliveryFailure('address_not_allowed');
  return addresses;
}

/** What the certificate has to be for; TLS has no server names for addresses. */
function serverNameOf(target: WebhookTarget): string {
  return target.addresses === null ? target.host : '';
}

function mayBeBetterElsewhere(error: unknown): boolean {
  if (!(error instanceof DeliveryFailure)) return false;
  return ['connection_refused', 'connection_failed', 'connection_closed', 'timeout'].includes(error.code);
}
