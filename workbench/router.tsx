import { createRootRoute, createRoute, createRouter, Link, lazyRouteComponent } from '@tanstack/react-router';
import type { Mode } from '../client/generated/types.gen.ts';
import { modeOfPath } from './session.ts';
import { Shell } from './shell.tsx';
import { Empty, Problem } from './ui/parts.tsx';

const root = createRootRoute({
  component: Shell,
  validateSearch: (search: Record<string, unknown>): Record<string, string> =>
    Object.fromEntries(Object.entries(search).map(([name, value]) => [name, String(value)])),
  errorComponent: ({ error }) => <Problem error={error} />,
  notFoundComponent: () => (
    <Empty title="There is no such page" action={<Link to="/">Home</Link>}>
      The address has a mistake, or the page has moved.
    </Empty>
  ),
});

const getParentRoute = () => root;
const home = () => import('./pages/home.tsx');
const cards = () => import('./pages/cards.tsx');
const card = () => import('./pages/card.tsx');
const payments = () => import('./pages/payments.tsx');
const authorization = () => import('./pages/authorization.tsx');
const balance = () => import('./pages/balance.tsx');
const deposits = () => import('./pages/deposits.tsx');
const events = () => import('./pages/events.tsx');
const endpoints = () => import('./pages/endpoints.tsx');
const keys = () => import('./pages/keys.tsx');
const requests = () => import('./pages/requests.tsx');
const clock = () => import('./pages/clock.tsx');

const tree = root.addChildren([
  createRoute({ getParentRoute, path: '/', component: lazyRouteComponent(home, 'Home') }),
  createRoute({ getParentRoute, path: '/cards', component: lazyRouteComponent(cards, 'Cards') }),
  createRoute({ getParentRoute, path: '/cards/$cardId', component: lazyRouteComponent(card, 'Card') }),
  createRoute({
    getParentRoute,
    path: '/payments',
    component: lazyRouteComponent(payments, 'Authorizations'),
  }),
  createRoute({
    getParentRoute,
    path: '/payments/transactions',
    component: lazyRouteComponent(payments, 'Transactions'),
  }),
  createRoute({
    getParentRoute,
    path: '/payments/$authorizationId',
    component: lazyRouteComponent(authorization, 'Authorization'),
  }),
  createRoute({ getParentRoute, path: '/balance', component: lazyRouteComponent(balance, 'Balance') }),
  createRoute({
    getParentRoute,
    path: '/balance/statements',
    component: lazyRouteComponent(balance, 'Statements'),
  }),
  createRoute({
    getParentRoute,
    path: '/balance/reports',
    component: lazyRouteComponent(balance, 'Reports'),
  }),
  createRoute({ getParentRoute, path: '/deposits', component: lazyRouteComponent(deposits, 'Deposits') }),
  createRoute({
    getParentRoute,
    path: '/deposits/$depositId',
    component: lazyRouteComponent(deposits, 'Deposit'),
  }),
  createRoute({ getParentRoute, path: '/events', component: lazyRouteComponent(events, 'Events') }),
  createRoute({ getParentRoute, path: '/events/$eventId', component: lazyRouteComponent(events, 'Event') }),
  createRoute({ getParentRoute, path: '/endpoints', component: lazyRouteComponent(endpoints, 'Endpoints') }),
  createRoute({
    getParentRoute,
    path: '/endpoints/$endpointId',
    component: lazyRouteComponent(endpoints, 'Endpoint'),
  }),
  createRoute({ getParentRoute, path: '/keys', component: lazyRouteComponent(keys, 'Keys') }),
  createRoute({ getParentRoute, path: '/requests', component: lazyRouteComponent(requests, 'Requests') }),
  createRoute({
    getParentRoute,
    path: '/requests/$requestId',
    component: lazyRouteComponent(requests, 'Request'),
  }),
  createRoute({
    getParentRoute,
    path: '/requests/operations',
    component: lazyRouteComponent(requests, 'Operations'),
  }),
  createRoute({
    getParentRoute,
    path: '/requests/operations/$operationId',
    component: lazyRouteComponent(requests, 'OneOperation'),
  }),
  createRoute({ getParentRoute, path: '/clock', component: lazyRouteComponent(clock, 'Clock') }),
]);

/** The pages of a mode. Filters stand in the address as plain words, as in the API. */
export function openRouter(mode: Mode) {
  // A link opens /workbench/, which is no page of either mode.
  if (modeOfPath(location.pathname) !== mode) history.replaceState(null, '', `/workbench/${mode}`);
  return createRouter({
    routeTree: tree,
    basepath: `/workbench/${mode}`,
    defaultPreload: 'intent',
    scrollRestoration: true,
    parseSearch: (search) => Object.fromEntries(new URLSearchParams(search)),
    stringifySearch: (search) => {
      const text = new URLSearchParams(search as Record<string, string>).toString();
      return text === '' ? '' : `?${text}`;
    },
  });
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof openRouter>;
  }
}
