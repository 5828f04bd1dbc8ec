import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Increase } from 'increase';
import { z } from 'zod';
import { startFakeServer } from '../fake-server.ts';
import { FaultRules } from '../fault-rules.ts';
import { Bank, BankError, type Books, emptyBooks, findObject } from './bank.ts';
import { Delivery } from './delivery.ts';
import { actsFirst, answerWithFault, type Fault } from './faults.ts';
import { makeId } from './objects.ts';
import { Simulations } from './simulations.ts';

interface FakeIncreaseOptions {
  /** By default any free one. */
  port?: number;
  /** What it knows from an earlier start; by default a funding account with 10 million dollars. */
  books?: Books;
  /** Called after each request that may have changed the books. */
  onChange?(books: Books): void;
}

export interface SeenRequest {
  /** `POST /cards` */
  name: string;
  key: string | null;
  body: string;
}

export interface FakeIncrease {
  url: string;
  apiKey: string;
  fundingAccountId: string;
  bank: Bank;
  simulations: Simulations;
  delivery: Delivery;
  faults: FaultRules<Fault>;
  /** `POST /cards` and so on, in their order. */
  requests: string[];
  /**
   * Called before a request is looked at, and again once it has acted. The fake waits for it, and drops what
   * it says.
   */
  onRequest: (request: SeenRequest, when: 'before' | 'after') => Promise<'drop' | 'go on'>;
  /** Subscribes our ingress to all events, and to real-time decisions. */
  subscribe(url: string, secret: string, options?: { asksForDecisions?: boolean }): void;
  stop(): Promise<void>;
}

const API_KEY = 'sandbox-key-of-the-fake';

/**
 * Starts a server on loopback that speaks the part of Increase's API that we use, as its published types
 * describe it.
 */
export async function startFakeIncrease(options: FakeIncreaseOptions = {}): Promise<FakeIncrease> {
  const bank = new Bank(options.books ?? emptyBooks());
  const delivery = new Delivery(bank);
  const simulations = new Simulations(bank);
  simulations.askForDecision = (decision) => delivery.ask(decision);
  const faults = new FaultRules<Fault>();
  const requests: string[] = [];
  const funding = bank.books.accounts[0] ?? bank.openAccount({ name: 'Funding' }, null);
  if (options.books === undefined) bank.pay(funding.id, 1_000_000_000);

  async function serve(request: IncomingMessage, text: string, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake');
    const name = `${request.method} ${url.pathname}`;
    requests.push(name);
    const key = request.headers['idempotency-key']?.toString() ?? null;
    if ((await fake.onRequest({ name, key, body: text }, 'before')) === 'drop') {
      request.socket.destroy();
      return;
    }
    const fault = faults.next(name);
    if (fault !== undefined && !actsFirst(fault)) return answerWithFault(fault, response, '');
    try {
      if (request.headers.authorization !== `Bearer ${API_KEY}`)
        throw new BankError(401, 'invalid_api_key_error');
      const body = text === '' ? {} : JSON.parse(text);
      const { answer, isReplayed } = await route({ bank, simulations }, name, { url, key, body });
      options.onChange?.(bank.books);
      await fake.onRequest({ name, key, body: text }, 'after');
      if (fault !== undefined) return answerWithFault(fault, response, JSON.stringify(answer));
      const replayed = isReplayed ? { 'idempotent-replayed': 'true' } : {};
      response
        .writeHead(200, { 'content-type': 'application/json', ...replayed })
        .end(JSON.stringify(answer));
    } catch (error) {
      const known =
        error instanceof BankError
          ? error
          : error instanceof z.ZodError
            ? new BankError(400, 'invalid_parameters_error', {
                errors: error.issues.map(({ path }) => ({ path })),
              })
            : new BankError(500, 'internal_server_error', { detail: String(error) });
      response
        .writeHead(known.status, { 'content-type': 'application/json' })
        .end(JSON.stringify(known.body));
    }
  }

  const fake: FakeIncrease = {
    url: '',
    apiKey: API_KEY,
    fundingAccountId: funding.id,
    bank,
    simulations,
    delivery,
    faults,
    requests,
    onRequest: async () => 'go on',
    subscribe(url, secret, { asksForDecisions = true } = {}) {
      subscribe(bank, { url, shared_secret: secret });
      if (!asksForDecisions) return;
      const selected = [{ event_category: 'real_time_decision.card_authorization_requested' as const }];
      subscribe(bank, { url, shared_secret: secret, selected_event_categories: selected });
    },
    async stop() {
      await delivery.stop();
      await server.stop();
    },
  };
  const server = await startFakeServer(options.port ?? 0, serve);
  fake.url = server.url;
  return fake;
}

interface Asked {
  url: URL;
  key: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: it is whatever was posted, until a schema has read it.
  body: any;
}

const NewAccount = z.strictObject({
  name: z.string().min(1),
  program_id: z.string().optional(),
  entity_id: z.string().optional(),
});
const NewCard = z.strictObject({ account_id: z.string(), description: z.string().optional() });
const NewTransfer = z.strictObject({
  account_id: z.string(),
  destination_account_id: z.string(),
  amount: z.int().positive(),
  description: z.string().min(1),
  require_approval: z.boolean().optional(),
});
const CardChange = z.strictObject({ status: z.enum(['active', 'disabled', 'canceled']).optional() });

/** Answers a request, or throws a {@link BankError}. */
async function route(
  { bank, simulations }: Pick<FakeIncrease, 'bank' | 'simulations'>,
  name: string,
  { url, key, body }: Asked,
): Promise<{ answer: unknown; isReplayed?: boolean }> {
  const { books } = bank;
  const path = url.pathname;
  const [, resource = '', id = '', step] = path.split('/');
  const list = listed(books)[resource];
  if (list !== undefined && step === undefined && name.startsWith('GET '))
    return { answer: id === '' ? page(list, url.searchParams) : findObject(list, id) };
  switch (id === '' ? name : name.replace(`/${id}`, '/ID')) {
    case 'POST /accounts': {
      const asked = NewAccount.parse(body);
      return replayable(bank.once({ key, path, body }, books.accounts, () => bank.openAccount(asked, key)));
    }
    case 'POST /cards': {
      const asked = NewCard.parse(body);
      return replayable(bank.once({ key, path, body }, books.cards, () => bank.makeCard(asked, key)));
    }
    case 'POST /account_transfers': {
      const asked = NewTransfer.parse(body);
      return replayable(bank.once({ key, path, body }, books.transfers, () => bank.transfer(asked, key)));
    }
    case 'POST /account_transfers/ID/approve':
      return { answer: bank.approve(id) };
    case 'POST /account_transfers/ID/cancel':
      return { answer: bank.cancel(id) };
    case 'PATCH /cards/ID':
      return { answer: bank.setStatus(id, CardChange.parse(body).status) };
    case 'GET /cards/ID/details':
      return { answer: bank.details(id) };
    case 'POST /real_time_decisions/ID/action':
      return { answer: bank.answer(id, body) };
    case 'POST /event_subscriptions':
      return { answer: withoutSecret(subscribe(bank, body)) };
    case 'POST /simulations/ID':
      return { answer: await simulate(simulations, id, body) };
    default:
      throw new BankError(404, 'api_method_not_found_error', { detail: `${name} ${step ?? ''}` });
  }
}

/** What can be read one by one and as a list, by its path. */
const listed = (books: Books): Record<string, { id: string; created_at: string }[]> => ({
  accounts: books.accounts,
  cards: books.cards,
  account_transfers: books.transfers,
  card_payments: books.payments,
  pending_transactions: books.pendingTransactions,
  real_time_decisions: books.decisions,
  events: books.events,
  event_subscriptions: books.subscriptions.map(withoutSecret),
});

/** The sandbox's own simulations, with its own parameters. */
function simulate(simulations: Simulations, what: string, body: Asked['body']): unknown {
  switch (what) {
    case 'card_authorizations':
      return simulations.authorize(body);
    case 'card_increments':
      return simulations.increment(body);
    case 'card_reversals':
      return simulations.reverse(body);
    case 'card_authorization_expirations':
      return simulations.expire(body);
    case 'card_fuel_confirmations':
      return simulations.confirmFuel(body);
    case 'card_settlements': {
      const { transaction_id } = simulations.settle(body);
      return { type: 'transaction', id: transaction_id };
    }
    default:
      throw new BankError(404, 'api_method_not_found_error');
  }
}

const replayable = ({ object, isReplayed }: { object: object; isReplayed: boolean }) => ({
  answer: object,
  isReplayed,
});

/** A list: the newest first, filtered as Increase filters. */
function page<Body extends { id: string; created_at: string }>(
  objects: readonly Body[],
  params: URLSearchParams,
): { data: Body[]; next_cursor: string | null } {
  const limit = Math.min(Number(params.get('limit') ?? 100), 100);
  const found = objects.toReversed().filter((object) =>
    [...params].every(([name, value]) => {
      const at = Date.parse(object.created_at);
      if (name === 'limit' || name === 'cursor') return true;
      if (name === 'created_at.on_or_after') return at >= Date.parse(value);
      if (name === 'created_at.before') return at < Date.parse(value);
      if (name === 'status.in' && 'status' in object) return object.status === value;
      if (!(name in object)) throw new BankError(400, 'invalid_parameters_error');
      return (object as Record<string, unknown>)[name] === value;
    }),
  );
  const cursor = params.get('cursor');
  const from = cursor === null ? 0 : found.findIndex(({ id }) => id === cursor) + 1;
  const data = found.slice(from, from + limit);
  return { data, next_cursor: from + limit < found.length ? (data.at(-1)?.id ?? null) : null };
}

function subscribe(bank: Bank, body: Increase.EventSubscriptionCreateParams) {
  const subscription = {
    id: makeId('event_subscription'),
    type: 'event_subscription' as const,
    created_at: bank.now(),
    idempotency_key: null,
    oauth_connection_id: null,
    selected_event_categories: body.selected_event_categories ?? null,
    status: body.status ?? ('active' as const),
    url: body.url,
    shared_secret: body.shared_secret ?? '',
  } satisfies Increase.EventSubscription & { shared_secret: string };
  bank.books.subscriptions.push(subscription);
  return subscription;
}

function withoutSecret({ shared_secret: _, ...subscription }: Bank['books']['subscriptions'][number]) {
  return subscription;
}
