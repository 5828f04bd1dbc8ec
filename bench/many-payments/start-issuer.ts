import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AUTHORIZATIONS_PATH, EVENTS_PATH, TRANSACTION_EVENT } from '../../issuers/lithic/wire.ts';
import { type IssuedPayments, paymentNumber } from './issued-payments.ts';

const OURS = 'https://api.example.com';

export interface BenchIssuer {
  /** As LITHIC_BASE_URL takes it. */
  url: string;
  /** How many pages of payments were read. */
  pages(): number;
  stop(): void;
}

/**
 * Starts a Lithic on loopback that has only what the reconciliation reads. Its payments exist for as long as
 * a page of them is written.
 */
export async function startBenchIssuer(payments: IssuedPayments): Promise<BenchIssuer> {
  let pages = 0;

  function answer(path: string, query: URLSearchParams): object | null {
    const [, list, token] = /^\/v1\/(\w+)\/?(.*)$/.exec(path) ?? [];
    switch (list) {
      case 'cards':
        // They are older than the period.
        return { data: [], has_more: false };
      case 'transactions':
        if (token !== '') return payments.find(paymentNumber(token ?? '') ?? 0);
        pages += 1;
        return page(query);
      case 'responder_endpoints':
        return { enrolled: true, url: OURS + AUTHORIZATIONS_PATH };
      case 'event_subscriptions': {
        const one = {
          token: 'ep_1',
          disabled: false,
          url: OURS + EVENTS_PATH,
          event_types: [TRANSACTION_EVENT],
        };
        return { data: [one], has_more: false };
      }
      default:
        return null;
    }
  }

  function page(query: URLSearchParams): object {
    const after = query.get('starting_after');
    const size = Number(query.get('page_size'));
    const [beginMs, endMs] = [query.get('begin'), query.get('end')].map((time) => Date.parse(time ?? ''));
    const below = after === null ? null : paymentNumber(after);
    const data: object[] = [];
    for (const payment of payments.newestFirst(beginMs ?? 0, endMs ?? 0, below)) {
      data.push(payment);
      // One more, which says that there is another page.
      if (data.length > size) break;
    }
    return { data: data.slice(0, size), has_more: data.length > size };
  }

  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://lithic');
    const body = answer(pathname, searchParams);
    response.writeHead(body === null ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body ?? { message: 'There is no such object' }));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pages: () => pages,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
