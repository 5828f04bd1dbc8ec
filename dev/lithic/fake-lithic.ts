import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { startFakeServer } from '../fake-server.ts';
import { FaultRules } from '../fault-rules.ts';
import { type Fault, type Response, respondWith, send } from './faults.ts';
import { type Card, makeCard, withoutSecrets } from './objects.ts';
import type { PostOptions } from './posts.ts';
import { type Books, Program } from './program.ts';
import { simulate } from './simulate.ts';

interface FakeLithicOptions extends Partial<PostOptions> {
  apiKey: string;
  /** By default any free one. */
  port?: number;
  /** What it had made before it stopped. */
  books?: Books;
  /** Called after each call, with all that it has made. */
  onChange?: (books: Books) => void;
}

export interface FakeLithic {
  /** As LITHIC_BASE_URL takes it. */
  url: string;
  program: Program;
  faults: FaultRules<Fault>;
  /** Every call, with its Idempotency-Key. */
  calls: { call: string; key: string | null }[];
  /** Called before a call is looked at, for instance `GET /v1/cards`. The fake waits for it. */
  onCall: (call: string) => Promise<void>;
  stop(): Promise<void>;
}

const KEY_LIFETIME_MS = 24 * 3_600_000;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * Starts a Lithic on loopback: the part of its HTTP API that we use, Auth Stream Access, events, and the
 * simulations of its sandbox.
 */
export async function startFakeLithic(options: FakeLithicOptions): Promise<FakeLithic> {
  const { apiKey, port = 0, receiverUrl = null, webhookSecrets = [], asaSecrets = [] } = options;
  const { asaTimeoutMs = 6_000, onChange } = options;
  const program = new Program({ receiverUrl, webhookSecrets, asaSecrets, asaTimeoutMs });
  if (options.books !== undefined) program.load(options.books);
  /** Lithic repeats what it answered to a key, even a 500, until it forgets the key. */
  const keys = new Map<string, { atMs: number; request: string; response: Response }>();
  const faults = new FaultRules<Fault>();
  const calls: FakeLithic['calls'] = [];

  const serve = async (request: IncomingMessage, text: string, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://lithic');
    const call = `${request.method} ${pathname}`;
    const key = request.headers['idempotency-key']?.toString() ?? null;
    calls.push({ call, key });
    await fake.onCall(call);
    const fault = faults.next(call);
    if (request.headers.authorization !== apiKey) {
      return send(response, fault, problem(401, 'Please provide a valid API key'));
    }
    const body: unknown = text === '' ? {} : JSON.parse(text);
    const known = key === null ? undefined : keys.get(key);
    if (known !== undefined && program.now().getTime() - known.atMs < KEY_LIFETIME_MS) {
      const repeated =
        known.request === text ? known.response : problem(422, 'The key belongs to another request');
      const repeatedResponse = respondWith(fault, () => repeated);
      return send(response, fault, repeatedResponse);
    }
    const acted = pathname.startsWith('/v1/simulate/')
      ? await simulate(program, pathname.slice('/v1/simulate/'.length), body)
      : respondWith(fault, () => act(call, searchParams, body, key));
    const isKept = key !== null && acted.status !== 0 && acted.status !== 401 && acted.status !== 429;
    if (isKept) keys.set(key, { atMs: program.now().getTime(), request: text, response: acted });
    onChange?.(program.books());
    send(response, fault, acted);
  };

  function act(call: string, query: URLSearchParams, body: unknown, key: string | null): Response {
    const [, method = '', path = '', token = ''] = /^(\w+) \/v1\/(\w+)\/?(.*)$/.exec(call) ?? [];
    switch (`${method} ${path}`) {
      case 'POST cards': {
        if (key !== null && !UUID.test(key)) return problem(400, 'The Idempotency-Key must be a UUID');
        const asked = NewCard.safeParse(body);
        if (!asked.success) return problem(400, 'The card can not be created');
        const card = makeCard(asked.data, program.now());
        program.cards.set(card.token, card);
        return { status: 200, body: { ...card } };
      }
      case 'GET cards': {
        if (token === '') {
          const memo = query.get('memo') ?? '';
          // Lithic matches parts of a memo.
          const found = [...program.cards.values()].filter((card) => card.memo.includes(memo));
          return page(found.map(withoutSecrets), query);
        }
        if (!UUID.test(token)) return problem(400, 'The card token must be a UUID');
        const card = program.cards.get(token);
        return card === undefined
          ? problem(404, 'There is no such card')
          : { status: 200, body: { ...card } };
      }
      case 'PATCH cards': {
        const card = program.cards.get(token);
        const { state } = CardChange.parse(body);
        if (card === undefined) return problem(404, 'There is no such card');
        if (card.state === 'CLOSED' && state !== 'CLOSED') return problem(400, 'A closed card stays closed');
        card.state = state;
        return { status: 200, body: { ...card } };
      }
      case 'GET transactions': {
        if (token === '') return page([...program.transactions.values()], query);
        const transaction = program.transactions.get(token);
        return transaction === undefined
          ? problem(404, 'There is no such transaction')
          : { status: 200, body: transaction };
      }
      case 'GET responder_endpoints':
        return { status: 200, body: { enrolled: program.responderUrl !== null, url: program.responderUrl } };
      case 'GET event_subscriptions':
        return { status: 200, body: { data: program.eventSubscriptions(), has_more: false } };
      default:
        return problem(404, 'There is no such path');
    }
  }

  const server = await startFakeServer(port, serve);
  const fake: FakeLithic = {
    url: server.url,
    program,
    faults,
    calls,
    onCall: async () => {},
    stop: async () => {
      await server.stop();
      await program.posts.stop();
    },
  };
  return fake;
}

/** One card's state; the newest card or transaction is first in a list. */
const CardChange = z.object({ state: z.enum(['OPEN', 'PAUSED', 'CLOSED']) });
const NewCard = z.object({
  type: z.literal('VIRTUAL'),
  memo: z.string(),
  state: z.enum(['OPEN', 'PAUSED']).default('OPEN'),
  card_program_token: z.string().optional(),
}) satisfies z.ZodType<Partial<Card>>;

function page(all: readonly { token: string; created: string }[], query: URLSearchParams): Response {
  const begin = query.get('begin') ?? '';
  const end = query.get('end') ?? '9999';
  const listed = all.filter(({ created }) => created > begin && created < end).reverse();
  const after = query.get('starting_after');
  const from = after === null ? 0 : listed.findIndex(({ token }) => token === after) + 1;
  const size = Number(query.get('page_size') ?? '50');
  const data = listed.slice(from, from + size);
  return { status: 200, body: { data, has_more: from + size < listed.length } };
}

function problem(status: number, message: string): Response {
  return { status, body: { message, debugging_request_id: '94d5e915-4c5f-4f3a-9e7e-6f1d3b1d7c11' } };
}
