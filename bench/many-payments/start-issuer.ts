import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import type { Standing } from './issued-payments.ts';

/**
 * A card network that has only what the reconciliation reads. Its payments exist for as long as a page of them is
 * written.
 */
export interface BenchNetwork {
  /** CARD_NETWORK */
  name: 'lithic' | 'increase';
  /** What the operator's command needs to ask it. */
  variables(url: string): Record<string, string>;
  /** @returns null if there is no such object */
  answer(path: string, query: URLSearchParams): object | null;
  /** How many pages of payments were read, and of what they hold. */
  pages(): number;
  /** A payment as its adapter reads it. */
  snapshot(number: number, standing: Standing): PaymentSnapshot;
  /** The part of the version that is the payment's own, in milliseconds; null if there is none. */
  versionMs(number: number, standing: Standing): number | null;
}

/** Where it posts, as it is set up there. */
export const OURS = 'https://api.example.com';

/** Starts it on loopback. */
export async function startBenchIssuer(network: BenchNetwork): Promise<{ url: string; stop(): void }> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://issuer');
    const body = network.answer(pathname, searchParams);
    response.writeHead(body === null ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body ?? { type: 'object_not_found_error' }));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
