import assert from 'node:assert/strict';
import { type OpenSocket, openSocket } from '../../../../webhooks/client/checked-socket.ts';
import type { DeliveryResult } from '../../../../webhooks/client/delivery-result.ts';
import {
  createWebhookClient,
  type WebhookClientOptions,
} from '../../../../webhooks/client/webhook-client.ts';
import { untilHolds } from '../../until.ts';
import { BODY, type Receiver } from './receivers.ts';

/** An address of the public internet. Nothing is ever sent there: `leadTo` sends it to this machine. */
export const PUBLIC = '93.184.215.14';
export const HOST = 'hooks.partner.example';

/**
 * A network in which every address that passed the checks leads to this port, as if the receiver were out there.
 * @param connected is told the addresses
 * @param plain without TLS, where TLS is not what a test is about
 */
export function leadTo(
  port: number,
  { connected = [], plain = false }: { connected?: string[]; plain?: boolean } = {},
): OpenSocket {
  return (target) => {
    connected.push(target.address);
    const tls = plain ? null : target.tls;
    return openSocket({ ...target, tls, address: '127.0.0.1', port });
  };
}

/** Does something with a client that may speak plain HTTP to this machine, and ends the client. */
export async function withClient<T>(
  options: Partial<WebhookClientOptions>,
  use: (post: (url: string, endpointId?: string) => Promise<DeliveryResult>) => Promise<T>,
): Promise<T> {
  const client = createWebhookClient({ timeoutMs: 20_000, allowLoopbackHttp: true, ...options });
  try {
    return await use((url, endpointId = 'we_1') =>
      client.deliver({ endpointId, url, body: BODY, sign: () => ({ 'X-Service-Event-Id': 'evt_1' }) }),
    );
  } finally {
    await client.close();
  }
}

/** Posts once to a receiver. @param after looks at the receiver before the client is closed */
export async function postTo(
  starting: Promise<Receiver>,
  {
    path = '/',
    after = () => {},
  }: { path?: string; after?: (receiver: Receiver) => void | Promise<void> } = {},
) {
  const receiver = await starting;
  try {
    return await withClient({}, async (post) => {
      const result = await post(`http://127.0.0.1:${receiver.port}${path}`);
      await after(receiver);
      return result;
    });
  } finally {
    await receiver.close();
  }
}

export const isLetGo = (receiver: Receiver) => untilHolds(() => assert.equal(receiver.open.size, 0));
