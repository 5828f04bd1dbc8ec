import type { IssuingDependencies } from './issue-card.ts';
import type { Route } from './route.ts';
import { getBalance } from './routes/balance.ts';
import { createCard, getCard, listCards } from './routes/cards.ts';
import { ping } from './routes/ping.ts';
import { listProducts } from './routes/products.ts';
import { createQuote } from './routes/quotes.ts';
import { creditTestBalance } from './routes/test-credit.ts';

/** Every route of /v1, in the order of the reference. */
export function createRoutes(dependencies: IssuingDependencies): Route[] {
  return [
    ping(),
    getBalance(dependencies),
    listProducts(dependencies),
    createQuote(dependencies),
    createCard(dependencies),
    listCards(dependencies),
    getCard(dependencies),
    creditTestBalance(dependencies),
  ] as Route[];
}

/** The declarations alone: nothing of them is read before a request comes. */
export function documentedRoutes(): Route[] {
  return createRoutes(new Proxy({} as IssuingDependencies, { get: () => undefined }));
}
