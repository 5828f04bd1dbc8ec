import { type OpenSocket, openSocket } from '../../../../adapters/webhooks/checked-socket.ts';
import type { DeliveryResult } from '../../../../adapters/webhooks/delivery-result.ts';
import {
  createWebhookClient,
  type WebhookClientOptions,
} from '../../../../adapters/webhooks/webhook-client.ts';
import { BODY } from './receivers.ts';

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
  use: (post: (url: string) => Promise<DeliveryResult>) => Promise<T>,
): Promise<T> {
  const client = createWebhookClient({ timeoutMs: 20_000, allowLoopbackHttp: true, ...options });
  try {
    return await use((url) =>
      client.deliver({ url, body: BODY, headers: { 'X-Service-Event-Id': 'evt_1' } }),
    );
  } finally {
    await client.close();
  }
}
